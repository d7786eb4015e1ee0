"""Sentences from a weighted grammar file: one language, or two in step (a synchronous grammar).

    NP -> the ADJ NOUN => NOUN ADJ la @3

reads: in language one `the`, an adjective, a noun; in language two the noun, the adjective, `la`;
three times as likely as a rule without `@`. Names in capitals are expanded, `NP/1` and `NP/2` are
two different noun phrases of one rule, and `|` separates alternatives.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import dataclass
from importlib import resources

from .errors import ConfigError

_NAME = re.compile(r"[A-Z][A-Z_]*(/\d+)?")


@dataclass(frozen=True)
class Rule:
    source: tuple[str, ...]
    target: tuple[str, ...]
    weight: float


def is_name(symbol: str) -> bool:
    return _NAME.fullmatch(symbol) is not None


def _parse_rule(text: str, where: str) -> Rule:
    body, _, weight = text.partition("@")
    left, arrow, right = body.partition("=>")
    source, target = tuple(left.split()), tuple((right if arrow else left).split())
    if not source:
        raise ConfigError(f"{where}: a rule expands to nothing")
    if sorted(filter(is_name, source)) != sorted(filter(is_name, target)):
        raise ConfigError(
            f"{where}: the two sides of {text.strip()!r} do not expand the same names"
        )
    return Rule(source, target, float(weight) if weight else 1.0)


class Grammar:
    def __init__(self, rules: dict[str, list[Rule]], start: str) -> None:
        self.rules = rules
        self.start = start
        for name, alternatives in rules.items():
            for rule in alternatives:
                for symbol in filter(is_name, rule.source):
                    if symbol.split("/")[0] not in rules:
                        raise ConfigError(f"grammar rule {name} uses {symbol}, which has no rule")
        self._weights = {
            name: [rule.weight for rule in alternatives] for name, alternatives in rules.items()
        }

    @classmethod
    def parse(cls, text: str) -> Grammar:
        rules: dict[str, list[Rule]] = defaultdict(list)
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.partition("#")[0].strip()
            if not line:
                continue
            name, arrow, body = line.partition("->")
            if not arrow:
                raise ConfigError(f"grammar line {number}: expected NAME -> ..., found {line!r}")
            rules[name.strip()] += [
                _parse_rule(part, f"grammar line {number}") for part in body.split("|")
            ]
        return cls(dict(rules), start=next(iter(rules)))

    def sample(self, rng: random.Random) -> tuple[str, str]:
        """One sentence, in both languages (twice the same text when the grammar has only one)."""
        source, target = self._expand(self.start, rng)
        return " ".join(source), " ".join(target)

    def _expand(self, name: str, rng: random.Random) -> tuple[list[str], list[str]]:
        rule = rng.choices(self.rules[name], self._weights[name])[0]
        parts = {s: self._expand(s.split("/")[0], rng) for s in rule.source if is_name(s)}
        source = [word for s in rule.source for word in (parts[s][0] if s in parts else [s])]
        target = [word for s in rule.target for word in (parts[s][1] if s in parts else [s])]
        return source, target

    def synonyms(self) -> dict[str, list[str]]:
        """Words of language one that one name may expand to and that mean the same in language
        two.
        """
        groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        for name, alternatives in self.rules.items():
            for rule in alternatives:
                if len(rule.source) == 1 and not is_name(rule.source[0]):
                    groups[name, rule.target].append(rule.source[0])
        return {word: words for words in groups.values() if len(words) > 1 for word in words}


def load(filename: str) -> Grammar:
    """A grammar shipped with the package."""
    return Grammar.parse(
        resources.files(__package__).joinpath(filename).read_text(encoding="utf-8")
    )
