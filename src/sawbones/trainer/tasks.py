"""The tasks: examples made from a seed, split so that no content is on two sides."""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import grammar
from .config import DataConfig
from .determinism import derive_seed
from .errors import ConfigError, SplitLeak

LETTERS = string.ascii_lowercase
SENTENCES_PER_TEXT = 3
_MAX_REPEATS_IN_A_ROW = (
    20_000  # the generator has run dry when this many examples in a row were seen before
)


@dataclass(frozen=True)
class Example:
    """`keys` names the content: two examples that share a key must not be on two sides of a
    split.
    """

    source: str | None
    target: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Splits:
    train: list[Example]
    val: list[Example]
    test: list[Example]

    def named(self) -> dict[str, list[Example]]:
        return {"train": self.train, "val": self.val, "test": self.test}


def _letters(config: DataConfig, rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(config.min_length, config.max_length)))


def _copy(config: DataConfig, rng: random.Random) -> Example:
    text = _letters(config, rng)
    return Example(text, text, (text,))


def _reverse(config: DataConfig, rng: random.Random) -> Example:
    text = _letters(config, rng)
    return Example(text, text[::-1], (text,))


def _sort(config: DataConfig, rng: random.Random) -> Example:
    text = _letters(config, rng)
    return Example(text, "".join(sorted(text)), (text,))


def _translations() -> Callable[[DataConfig, random.Random], Example]:
    language = grammar.load("translation_grammar.txt")

    def make(config: DataConfig, rng: random.Random) -> Example:
        source, target = language.sample(rng)
        # The translation is the key: two sources that differ by a synonym say the same thing.
        return Example(source, target, (target,))

    return make


def _texts() -> Callable[[DataConfig, random.Random], Example]:
    language = grammar.load("lm_grammar.txt")

    def make(config: DataConfig, rng: random.Random) -> Example:
        sentences = [language.sample(rng)[0] for _ in range(SENTENCES_PER_TEXT)]
        return Example(None, " ".join(sentences), tuple(dict.fromkeys(sentences)))

    return make


def maker(task: str) -> Callable[[DataConfig, random.Random], Example]:
    plain = {"copy": _copy, "reverse": _reverse, "sort": _sort}
    if task in plain:
        return plain[task]
    if task == "translation":
        return _translations()
    if task == "lm":
        return _texts()
    raise ConfigError(f"no task {task!r}")


def build_splits(config: DataConfig) -> Splits:
    """Test and validation first, then training examples that share no content with either."""
    make = maker(config.task)
    stream = random.Random(derive_seed(config.seed, "data", config.task))
    taken: dict[str, int] = {}
    parts: list[list[Example]] = []
    for side, size in enumerate((config.num_test, config.num_val, config.num_train)):
        parts.append(list(_distinct(config, make, stream, taken, side, size)))
    splits = Splits(train=parts[2], val=parts[1], test=parts[0])
    check_disjoint(splits)
    return splits


def _distinct(
    config: DataConfig,
    make: Callable[[DataConfig, random.Random], Example],
    stream: random.Random,
    taken: dict[str, int],
    side: int,
    size: int,
) -> Iterator[Example]:
    """Examples no other side holds, and that are not wholly made of what this side has seen."""
    found = repeats = 0
    while found < size:
        example = make(config, stream)
        sides = [taken.get(key) for key in example.keys]
        if all(s == side for s in sides) or any(s not in (None, side) for s in sides):
            repeats += 1
            if repeats > _MAX_REPEATS_IN_A_ROW:
                raise ConfigError(
                    f"task {config.task} has no {size} distinct examples left after {found}; "
                    "ask for fewer examples or for longer ones (max_length)"
                )
            continue
        repeats = 0
        taken.update(dict.fromkeys(example.keys, side))
        found += 1
        yield example


def check_disjoint(splits: Splits) -> None:
    owner: dict[str, str] = {}
    for name, examples in splits.named().items():
        for example in examples:
            for key in example.keys:
                if owner.setdefault(key, name) != name:
                    raise SplitLeak(
                        f"{key!r} is in the {owner[key]} and in the {name} split; splits "
                        "must not share content"
                    )


def content_hash(splits: Splits) -> str:
    digest = hashlib.sha256()
    for name, examples in splits.named().items():
        for example in examples:
            digest.update(f"{name}\0{example.source}\0{example.target}\n".encode())
    return digest.hexdigest()
