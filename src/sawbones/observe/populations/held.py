"""Columns of few kinds that the script holds while it evaluates: one value for each row, of the
target or of what the rows differ in.
"""

from __future__ import annotations

import hashlib
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.observe.sites import is_user_file
from sawbones.observe.sources.containers import as_array, held_rows, kind_of

FEW_KINDS = 20
LEAST_ROWS, MAX_ROWS = 40, 20_000
MAX_COLUMNS = 32
MAX_FRAMES = 4
BEYOND_CHANCE = 4.0  # standard errors by which answers agree with what may be their target


@dataclass(frozen=True)
class Held:
    name: str
    codes: npt.NDArray[np.int64]
    kinds: tuple[str, ...]
    values: npt.NDArray[np.float32] | None  # where they are whole numbers

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(self.codes.tobytes() + "|".join(self.kinds).encode()).digest()


def held_columns(frame: types.FrameType | None) -> list[Held]:
    found: list[Held] = []
    frames = 0
    while frame is not None and frames < MAX_FRAMES and len(found) < MAX_COLUMNS:
        if is_user_file(frame.f_code.co_filename):
            frames += 1
            for name, value in held_rows(dict(frame.f_locals)):
                found += _columns(name, value)
        frame = frame.f_back
    return found[:MAX_COLUMNS]


def _columns(name: str, value: Any) -> Iterator[Held]:
    kind = kind_of(value)
    if kind is None or not LEAST_ROWS <= len(value) <= MAX_ROWS:
        return
    if kind == "table":
        for i, column in enumerate(list(value.columns)[:MAX_COLUMNS]):
            if (one := _held(str(column), value.iloc[:, i].to_numpy())) is not None:
                yield one
    elif kind not in ("records", "lists"):
        plain = as_array(value, kind)
        if plain is not None and plain.ndim == 1 and (one := _held(name, plain)) is not None:
            yield one


def _held(name: str, plain: npt.NDArray[Any]) -> Held | None:
    if plain.dtype.kind not in "iubOUf":
        return None
    whole = plain.dtype.kind in "iub" or (
        plain.dtype.kind == "f" and bool(np.array_equal(plain, np.round(plain)))
    )
    if plain.dtype.kind == "f" and not whole:
        return None
    words = plain if plain.dtype.kind != "O" else np.array([str(v) for v in plain.tolist()])
    kinds, codes = np.unique(words, return_inverse=True)
    if not 2 <= len(kinds) <= FEW_KINDS:
        return None
    values = plain.astype(np.float32) if whole else None
    return Held(name, codes.astype(np.int64), tuple(str(k) for k in kinds.tolist()), values)


def target_among(held: list[Held], answers: npt.NDArray[np.float32]) -> Any:
    """The one column that can be the target of these answers; None where there is none, several, or
    no agreement beyond chance.
    """
    rows, width = answers.shape
    chosen = answers.argmax(1) if width > 1 else None
    fits: dict[bytes, npt.NDArray[np.float32]] = {}
    for one in held:
        known = one.values is not None and len(one.codes) == rows
        if known and one.values is not None and one.values.min() >= 0 and one.values.max() < width:
            fits[one.values.tobytes()] = one.values
    if chosen is None or len(fits) != 1:
        return None
    (values,) = fits.values()
    return values if agrees(chosen.astype(np.float32), values) else None


def agrees(chosen: npt.NDArray[np.float32], values: npt.NDArray[np.float32]) -> bool:
    """Whether answers are these values more often than chance would have it, by far."""
    agree = float(np.mean(chosen == values))
    chance = sum(
        float(np.mean(chosen == c)) * float(np.mean(values == c)) for c in np.unique(values)
    )
    error = math.sqrt(max(chance * (1 - chance), 1e-9) / len(values))
    return agree - chance > BEYOND_CHANCE * error
