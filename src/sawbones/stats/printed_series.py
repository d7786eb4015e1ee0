"""Numbers that a script prints again and again, by the words in front of them: how training goes in
the script's own account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")
_MORE_IS_BETTER = frozenset(
    [
        "return",
        "returns",
        "ret",
        "reward",
        "rewards",
        "rew",
        "score",
        "scores",
        "success",
        "successes",
        "win",
        "wins",
        "winrate",
        "solved",
        "caught",
        "fitness",
        "profit",
        "utility",
        "accuracy",
        "acc",
    ]
)
_LESS_IS_BETTER = frozenset(
    [
        "loss",
        "losses",
        "cost",
        "costs",
        "error",
        "errors",
        "err",
        "mse",
        "mae",
        "rmse",
        "distance",
        "dist",
        "regret",
        "penalty",
        "energy",
        "makespan",
        "tour",
        "tours",
        "route",
        "path",
        "nll",
        "ppl",
        "perplexity",
        "kl",
        "entropy",
        "std",
        "variance",
        "time",
        "seconds",
        "sec",
        "ms",
        "min",
        "lr",
        "rate",
        "grad",
        "norm",
    ]
)
_AS_LONG_AS_IT_GOES = frozenset(["length", "lengths", "len", "lifetime", "survived"])
_NEVER_FALLS = frozenset(
    ["best", "max", "maximum", "highest", "total", "cumulative", "sum", "record"]
)
_FEWEST = 3  # values
_WORTH = 0.1  # of a reward: less is no rise that training is done for


@dataclass(frozen=True)
class Series:
    label: str
    values: tuple[float, ...]
    of_length: bool  # how long an episode goes on, which is better where it is paid for

    @property
    def later(self) -> tuple[float, ...]:
        return self.values[len(self.values) // 2 :]

    @property
    def level(self) -> float:
        return float(np.median(self.later))

    def gain(self) -> float:
        return self.level - self.values[0]

    def rises(self) -> bool:
        """Its later half lies above where it began, by more than it scatters there and by a good
        part of either.
        """
        begin, end = self.values[0], self.level
        return self.gain() > max(2 * float(np.std(self.later)), _WORTH * max(abs(begin), abs(end)))


def rewards(lines: Iterable[str]) -> dict[str, Series]:
    """Those of which more is better, by their own words; how long an episode goes on where there
    are no others.
    """
    found: dict[str, list[float]] = {}
    for line in lines:
        for label, number in _numbers(line):
            found.setdefault(label, []).append(number)
    known = {k: v for k, v in found.items() if len(v) >= _FEWEST}
    for words, of_length in ((_MORE_IS_BETTER, False), (_AS_LONG_AS_IT_GOES, True)):
        chosen = {k: Series(k, tuple(v), of_length) for k, v in known.items() if _names(k, words)}
        if chosen:
            return chosen
    return {}


def is_ahead(now: Series, was: Series) -> bool:
    """Every value of its later half lies above every one of the other's, by a good part of
    either.
    """
    gap = now.level - was.level
    worth = _WORTH * max(abs(now.level), abs(was.level))
    return min(now.later) > max(was.later) and gap > worth


def _names(label: str, words: frozenset[str]) -> bool:
    said = set(_WORD.findall(label))
    return bool(said & words) and not said & (_LESS_IS_BETTER | _NEVER_FALLS)


def _numbers(line: str) -> Iterable[tuple[str, float]]:
    begin = 0
    for found in _NUMBER.finditer(line):
        label = " ".join(_WORD.findall(line[begin : found.start()].lower()))
        begin = found.end()
        if label:
            yield label, float(found[0])
