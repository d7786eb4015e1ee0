"""Categories that an evaluation numbers otherwise than training: the model answers once more for
the same rows with other codes.

Where a renumbering is possible at all (codes are distributed otherwise than in training, and their
sorted frequencies are not), the new codes are read off half of the rows, by what the model then
answers, and judged on the other half. How often a code occurs has no part in the search: that the
frequencies of training come back with the right answers is a second witness.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sawbones.observe.populations.coded import Calls, Place, Table, again, put
from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import PassLog
from sawbones.schema.populations import RenumberedColumn, Renumbering
from sawbones.stats.assignment import assigned

SWEEPS = 3
MAX_SEARCHED = 1000  # rows
MAX_WORK = 3e11  # parameters x rows x answers
BEYOND_CHANCE = 5.0  # standard errors of the square sum of shares
BY_RANK = 0.5  # of the distance of the codes, sorted by frequency
CUT = 30.0  # of a log-loss: one row that was surely wrong weighs no more

Floats = npt.NDArray[np.float64]
Codes = dict[Place, Table]


@dataclass
class _Asked:
    """A model with the rows of one evaluation."""

    module: nn.Module
    calls: Calls
    inputs: list[torch.Tensor]
    wanted: Table
    kind: str

    def loss(self, rows: npt.NDArray[np.int64], codes: Codes) -> Floats:
        """Row by row, with these codes for the columns."""
        inputs = [t[torch.from_numpy(rows)].clone() for t in self.inputs]
        for place, values in codes.items():
            put(inputs, place, values[rows])
        args, kwargs = again(self.calls.spec, inputs)
        with torch.no_grad():
            result = self.module(*args, **kwargs)
        scores = result.detach().double().reshape(len(rows), -1).numpy()
        return _losses(scores, self.wanted[rows], self.kind)


def renumbered(log: PassLog, found: list[Judged]) -> Renumbering | None:
    """The first evaluation of the trained model that is right with its codes renumbered."""
    for one in found:
        if one.likeness is None and one.errors is not None and one.wanted is not None:
            told = _renumbered(log, one)
            if told is not None:
                return told
    return None


def _renumbered(log: PassLog, one: Judged) -> Renumbering | None:
    calls = log.latest()[one.number].calls
    columns = log.coded.codes(calls)
    moved = {p: c for p, c in columns.items() if may_be_renumbered(*c)}
    trained = log.module_of(one.number)
    if not moved or trained is None or one.wanted is None:
        return None
    rows = np.arange(calls.rows)[: len(one.wanted)]
    learnt, kept = rows[0::2][:MAX_SEARCHED], rows[1::2]
    tried = sum(len(np.unique(ours)) for ours, _ in moved.values())
    size = sum(p.numel() for p in trained.parameters())
    if SWEEPS * tried * len(learnt) * size > MAX_WORK:
        return None
    module = copy.deepcopy(trained).train(one.is_training)
    asked = _Asked(module, calls, calls.inputs(), one.wanted, one.kind)
    before = asked.loss(kept, {})
    codes = _searched(asked, moved, learnt)
    after = asked.loss(kept, codes)
    gain = before - after
    error = float(gain.std()) / max(len(gain), 1) ** 0.5
    return Renumbering(
        number=one.number,
        rows=len(kept),
        loss=float(before.mean()),
        renumbered=float(after.mean()),
        constant=_constant(one.wanted[kept], one.kind),
        errors=float(gain.mean()) / error if error > 0 else 0.0,
        columns=tuple(
            RenumberedColumn(
                place[0],
                place[1],
                len(np.unique(theirs)),
                int(sum(np.any(codes[place][theirs == c] != c) for c in np.unique(theirs))),
                _apart(ours, theirs),
                _apart(ours, codes[place]),
            )
            for place, (ours, theirs) in moved.items()
        ),
        sites=(),
    )


def may_be_renumbered(ours: Table, theirs: Table) -> bool:
    """Codes lie apart beyond chance, and their frequencies, sorted, by far less."""
    known = np.unique(np.concatenate([ours, theirs]))
    p, q = _shares(ours, known), _shares(theirs, known)
    both = 1 / len(ours) + 1 / len(theirs)
    pooled = (p * len(ours) + q * len(theirs)) / (len(ours) + len(theirs))
    square = float((((p - q) ** 2) / np.maximum(pooled * both, 1e-12)).sum())  # chi squared
    freedom = len(known) - 1
    beyond = (square - freedom) / (2 * freedom) ** 0.5
    sorted_apart = float(np.abs(np.sort(p) - np.sort(q)).sum()) / 2
    return beyond > BEYOND_CHANCE and sorted_apart < BY_RANK * _apart(ours, theirs)


def _searched(
    asked: _Asked, moved: dict[Place, tuple[Table, Table]], rows: npt.NDArray[np.int64]
) -> Codes:
    """Column by column, the codes of training under which the answers are best."""
    codes: Codes = {place: theirs for place, (_, theirs) in moved.items()}
    for _ in range(SWEEPS):
        for place, (ours, theirs) in moved.items():
            known, used = np.unique(ours), np.unique(theirs)
            costs = np.zeros((len(used), len(known)))
            for column, code in enumerate(known):
                tried = {**codes, place: np.full_like(theirs, code)}
                lost = asked.loss(rows, tried)
                for row, own in enumerate(used):
                    costs[row, column] = lost[theirs[rows] == own].sum()
            partner = known[assigned(costs)]
            codes[place] = partner[np.searchsorted(used, theirs)].astype(np.float32)
    return codes


def _losses(scores: Floats, wanted: Table, kind: str) -> Floats:
    if kind == "quantity":
        return np.abs(scores[:, 0] - wanted)
    if scores.shape[1] == 1:
        one = scores[:, 0]
        if one.min() >= 0 and one.max() <= 1:
            one = np.log(np.maximum(one, 1e-12)) - np.log(np.maximum(1 - one, 1e-12))
        return np.minimum(np.logaddexp(0, np.where(wanted > 0.5, -one, one)), CUT)
    top = scores.max(1, keepdims=True)
    of_all = top[:, 0] + np.log(np.exp(scores - top).sum(1))
    own = scores[np.arange(len(scores)), wanted.astype(np.int64)]
    lost: Floats = np.minimum(of_all - own, CUT)
    return lost


def _constant(wanted: Table, kind: str) -> float:
    """The loss of the best constant answer."""
    if kind == "quantity":
        return float(np.abs(wanted - np.median(wanted)).mean())
    shares = np.unique(wanted, return_counts=True)[1] / len(wanted)
    return float(-(shares * np.log(shares)).sum())


def _shares(values: Table, known: Table) -> Floats:
    return np.bincount(np.searchsorted(known, values), minlength=len(known)) / len(values)


def _apart(ours: Table, theirs: Table) -> float:
    """Total variation."""
    known = np.unique(np.concatenate([ours, theirs]))
    return float(np.abs(_shares(ours, known) - _shares(theirs, known)).sum()) / 2
