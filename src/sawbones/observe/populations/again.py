"""Rows that are scored again and again while a model is trained, and which of them were answered
right each time: what a choice of the best moment rests on.

The rows of a whole evaluation are known by what the model is given. Where a model is always given
the same rows, as the nodes of one graph, and answers for a part of them are compared, the part is
known by its labels in their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.populations.held import LEAST_ROWS
from sawbones.observe.populations.judged import kind_of
from sawbones.observe.populations.log import Pass, Values, cut
from sawbones.schema import Site
from sawbones.schema.populations import ScoredAgain
from sawbones.stats.choosing import chosen_by_halves

LEAST_TIMES = 4  # fewer are no choice among many
MAX_SERIES = 32
MAX_BYTES = 1 << 24  # of all right answers, a bit each
MAX_PARTS = 64  # labels that are trained on: more, and every batch has its own
SHOWN_LINES = 2  # of the script, innermost first

Hashes = npt.NDArray[np.int64]


@dataclass
class _Series:
    rows: int
    module: int
    given: Hashes  # what the model was given, each row once
    is_part: bool
    lines: tuple[Site, ...]
    steps: list[int] = field(default_factory=list)
    right: list[npt.NDArray[np.uint8]] = field(default_factory=list)  # a bit for each row
    losses: list[float] = field(default_factory=list)

    @property
    def answers(self) -> npt.NDArray[np.bool_]:
        packed = np.stack(self.right)
        return np.unpackbits(packed, axis=1, count=self.rows).astype(bool)


class ScoredRows:
    def __init__(self) -> None:
        self._series: dict[bytes, _Series] = {}
        self._trained_parts: dict[bytes, int] = {}  # labels -> how many
        self._bytes = 0
        self.is_full = False  # something could not be kept

    def settle(self, passes: Sequence[Pass], step: int) -> None:
        """These evaluations are over: training goes on, or the run ends."""
        for here in passes:
            right = _right(here)
            if right is None:
                continue
            hashes = np.array(here.hashes, np.int64)
            order = np.argsort(hashes, kind="stable")
            series = self._add(_digest(hashes[order]), here, hashes[order], right[order], step)
            if series is not None:
                series.losses.append(_log_loss(here))

    def compared(self, here: Pass, labels: torch.Tensor, equal: torch.Tensor, step: int) -> None:
        """Answers for some of the rows of one call were compared with these labels."""
        if not _is_part(labels, here.sizes[-1]) or equal.numel() != labels.numel():
            return
        right = equal.detach().reshape(-1).numpy()
        if right.dtype != np.bool_ or len(right) < LEAST_ROWS:
            return
        given = np.unique(np.array(here.hashes[-here.sizes[-1] :], np.int64))
        self._add(_labelled(labels), here, given, right, step, is_part=True)

    def learns(self, labels: torch.Tensor, given: int) -> None:
        """A loss over a part of so many rows that the model was given."""
        if len(self._trained_parts) < MAX_PARTS and _is_part(labels, given):
            self._trained_parts[_labelled(labels)] = labels.numel()

    def record(self, trained_for: Callable[[int], set[int]]) -> tuple[ScoredAgain, ...]:
        """`trained_for`: hashes of the rows that a model was trained on. Nothing where not all could
        be kept: who says what a choice was made by has to know all that it could be made by.
        """
        if self.is_full:
            return ()
        kept = [(key, s) for key, s in self._series.items() if self._is_clear(s, trained_for)]
        held = [s for _, s in kept]
        return tuple(
            ScoredAgain(
                rows=one.rows,
                steps=tuple(one.steps),
                scores=tuple(float(x) for x in one.answers.mean(1)),
                losses=tuple(one.losses),
                known=self._known(key, one, trained_for),
                honest=(
                    chosen_by_halves(one.answers) if len(set(one.steps)) >= LEAST_TIMES else None
                ),
                apart=tuple(i for i, other in enumerate(held) if self._are_apart(one, other)),
                sites=one.lines[:SHOWN_LINES],
            )
            for key, one in kept
        )

    def _add(
        self,
        key: bytes,
        here: Pass,
        given: Hashes,
        right: npt.NDArray[np.bool_],
        step: int,
        is_part: bool = False,
    ) -> _Series | None:
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MAX_SERIES:
                self.is_full = True
                return None
            made = _Series(len(right), here.module, given, is_part, here.lines)
            series = self._series[key] = made
        packed = np.packbits(right)
        self._bytes += packed.nbytes
        if len(right) != series.rows or self._bytes > MAX_BYTES:
            self.is_full = True
            return None
        series.module = here.module
        series.steps.append(step)
        series.right.append(packed)
        return series

    def _is_clear(self, one: _Series, trained_for: Callable[[int], set[int]]) -> bool:
        """A part of what a model is always given, also in training, where it is known which part is
        trained on; a whole evaluation always.
        """
        if not one.is_part:
            return True
        trained = trained_for(one.module)
        return bool(self._trained_parts) and all(h in trained for h in one.given.tolist())

    def _known(self, key: bytes, one: _Series, trained_for: Callable[[int], set[int]]) -> float:
        if one.is_part:
            return float(key in self._trained_parts)
        trained = trained_for(one.module)
        return sum(h in trained for h in one.given.tolist()) / len(one.given)

    def _are_apart(self, one: _Series, other: _Series) -> bool:
        """Neither shares a row with the other. Of two parts of the same rows that is so for certain
        only where both and what is trained on have room beside one another, and it is usual then.
        """
        if one is other or one.is_part != other.is_part:
            return False
        if not one.is_part:
            return not len(np.intersect1d(one.given, other.given))
        largest = max(self._trained_parts.values(), default=0)
        return one.rows + other.rows + largest <= len(one.given)


def _right(here: Pass) -> npt.NDArray[np.bool_] | None:
    """Row by row, where classes were asked for and it is known which."""
    answers = here.answers
    if answers is None or len(here.hashes) < LEAST_ROWS or len(answers) != len(here.hashes):
        return None
    targets: list[Values] = [t for t in here.targets if t is not None]
    if here.likeness is not None or len(targets) != len(here.targets):
        return None
    wanted = np.concatenate(targets)
    if kind_of(answers, wanted) != "classes":
        return None
    one = answers[:, 0]
    chosen = answers.argmax(1) if answers.shape[1] > 1 else one > cut(one)
    equal: npt.NDArray[np.bool_] = chosen == wanted
    return equal


def _log_loss(here: Pass) -> float:
    answers, wanted = here.answers, here.wanted
    if answers is None or wanted is None:
        return float("nan")
    if answers.shape[1] == 1:
        answers = np.concatenate([np.zeros_like(answers), answers], axis=1)
    scores = answers.astype(np.float64) - answers.max(1, keepdims=True)
    chosen = scores[np.arange(len(scores)), wanted.astype(np.int64)]
    return float(np.mean(np.log(np.exp(scores).sum(1)) - chosen))


def _is_part(labels: torch.Tensor, given: int) -> bool:
    plain = labels.device.type == "cpu" and not labels.is_floating_point()
    return plain and labels.dim() == 1 and LEAST_ROWS <= labels.numel() < given


def _labelled(labels: torch.Tensor) -> bytes:
    return _digest(labels.detach().to(torch.int64).numpy())


def _digest(values: Hashes) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()
