"""Tables that the script holds in its variables: columns of ids, of dates, vocabularies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeldGroups:
    """A column of ids, by which rows on both sides of a split belong together."""

    column: str
    names: tuple[str, str]  # of the variables: training, held out
    groups: int
    rows: tuple[int, int]
    share: float  # of held-out rows whose group is among those trained on
    classes: int  # of a target that is the same all over each group, 0 without one


@dataclass(frozen=True, slots=True)
class HeldTimes:
    """Two series of moments that share none."""

    column: str
    names: tuple[str, str]
    rows: tuple[int, int]
    even: float  # share of gaps that are alike
    turns: int  # from one to the other, in the order of time
    turns_if_dealt: float
    first: tuple[str, str]
    last: tuple[str, str]


@dataclass(frozen=True, slots=True)
class VocabularyPair:
    """Two vocabularies of nearly the same entries, or one and its table for decoding."""

    kind: str  # vocabularies, decoding, list
    names: tuple[str, str]
    shared: int
    moved: int
    examples: tuple[tuple[str, int, int], ...]
    shifted: bool  # all by the same number
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Strangers:
    """A score over evaluated rows before and after their relatives were taken from training."""

    column: str
    kind: str  # group, time
    groups: int
    outcome: str  # fell, kept, refused
    why: str = ""
    metric: str = ""  # classes, quantity
    rows: int = 0
    claimed: float = 0.0
    honest: float = 0.0
    control: float = 0.0  # with as many other training rows gone
    lower: float = 0.0  # end of the interval of the fall
    one_answer: bool = False  # all rows of a group have the same
