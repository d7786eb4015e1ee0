"""Pictures that are evaluated and were trained on turned by a right angle or mirrored: copies that
were made before the split.

Every trained picture has a number, and so have the turned and mirrored forms of every evaluated
one; equal numbers are equal pictures, bit by bit. Where training turns its pictures at random, some
are met as they are: calls that know some of their pictures as they are say how many, and the check
leaves such runs alone.
"""

from __future__ import annotations

import math

import torch

from sawbones.schema import samples as kinds

MAX_TRAINED = 30_000  # pictures looked at
MAX_EVALUATED = 400  # kept
MAX_VALUES = 1 << 24  # of these
LEAST_SIDE = 8
LEAST_LEVELS = 32  # different values in one picture: boards and masks meet their mirror by chance


class TurnedCopies:
    def __init__(self) -> None:
        self._trained: set[int] = set()
        self._looked = 0
        self._calls: list[tuple[int, list[torch.Tensor]]] = []  # pictures known as they are, others
        self._kept = 0
        self._values = 0

    def saw(self, phase: str, given: list[torch.Tensor]) -> None:
        is_full = self._looked >= MAX_TRAINED if phase == "train" else self._kept >= MAX_EVALUATED
        if is_full or phase not in ("train", "eval"):
            return
        pictures = _pictures(given)
        if pictures is None:
            return
        if phase == "train":
            self._looked += len(pictures)
            self._trained.update(_number(p) for p in pictures)
            return
        new = [p for p in pictures if _number(p) not in self._trained]
        kept = [p.clone() for p in new[: MAX_EVALUATED - self._kept] if _is_rich(p)]
        self._values += sum(p.numel() for p in kept)
        if kept and self._values <= MAX_VALUES:
            self._kept += len(kept)
            self._calls.append((len(pictures) - len(new), kept))

    def record(self) -> kinds.TurnedCopies | None:
        if not self._trained or not self._kept:
            return None
        evaluated = turned = as_they_are = 0
        for known, pictures in self._calls:
            new = [p for p in pictures if _number(p) not in self._trained]
            met = sum(any(_number(q) in self._trained for q in _forms(p)) for p in new)
            evaluated += len(new)
            turned += met
            as_they_are += (known + len(pictures) - len(new)) if met else 0
        return kinds.TurnedCopies(evaluated, len(self._trained), turned, as_they_are)


def _pictures(given: list[torch.Tensor]) -> torch.Tensor | None:
    floats = [t for t in given if t.is_floating_point() and t.dim() >= 2 and t.device.type == "cpu"]
    if not floats:
        return None
    rows = max(floats, key=lambda t: t.numel()).detach()
    if rows.dim() == 2:  # laid out in one line
        side = math.isqrt(rows.shape[1])
        if side * side != rows.shape[1]:
            return None
        rows = rows.reshape(len(rows), side, side)
    return rows if rows.dim() in (3, 4) and min(rows.shape[-2:]) >= LEAST_SIDE else None


def _number(picture: torch.Tensor) -> int:
    plain = picture.to(torch.float32) + 0.0  # one zero
    return hash((tuple(plain.shape), plain.contiguous().numpy().tobytes()))


def _is_rich(picture: torch.Tensor) -> bool:
    return len(torch.unique(picture)) >= LEAST_LEVELS


def _forms(picture: torch.Tensor) -> list[torch.Tensor]:
    """Turned by right angles and mirrored, without the picture as it is."""
    sides = (-2, -1)
    mirrored = picture.flip(-1)
    turned = [torch.rot90(p, k, sides) for p in (picture, mirrored) for k in range(4)]
    return turned[1:]
