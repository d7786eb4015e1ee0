"""Statistics that the script holds, and the mark that they leave on the model's inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FitHolder:
    """An estimator, or a mean and a spread in variables."""

    cls: str  # "" for variables
    names: tuple[str, ...]
    rows: int  # that it was fitted to
    assumed: bool = False  # the array that it was taken from is gone


@dataclass(frozen=True, slots=True)
class FitSign:
    kind: str  # standardised, centred, ranged
    columns: int
    of: int
    off: float  # over all rows
    own_off: float  # over the rows trained on


@dataclass(frozen=True, slots=True)
class Fitted:
    train_rows: int = 0
    rows: int = 0
    holders: tuple[FitHolder, ...] = ()
    signs: tuple[FitSign, ...] = ()
