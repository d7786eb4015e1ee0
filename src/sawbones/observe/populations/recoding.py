"""An evaluation whose labels are numbered otherwise than those the model was trained on: what it
answers is right under another name of each class.

The names are read off half of the rows and judged on the other half, so that a fit by chance gains
nothing. A model that merely confuses classes has no such names: several of its answers would have
to share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.judged import kind_of
from sawbones.observe.populations.log import Pass, cut
from sawbones.schema.populations import RecodedLabels
from sawbones.stats.distributions import wilson

LEAST_ROWS = 60
LEAST_OF_A_CLASS = 3  # answers, for its name to be read off
NEAR_REFERENCE = 0.1  # below the score of the sibling: other rows, and half of them
SHOWN_LINES = 4

Classes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Answered:
    number: int
    here: Pass
    chosen: Classes
    wanted: Classes

    @property
    def right(self) -> float:
        return float((self.chosen == self.wanted).mean())

    @property
    def knows_its_classes(self) -> bool:
        """Surely right more often than one answer to everything would be: what was turned round in
        training is right nowhere, and no evaluation of it shows which numbers are meant.
        """
        rows = len(self.wanted)
        constant = float(np.unique(self.wanted, return_counts=True)[1].max()) / rows
        return wilson(self.right * rows, rows)[0] > constant


def recoded_labels(passes: Sequence[Pass]) -> RecodedLabels | None:
    """The first pass that is right under other names, beside a sibling that is right as it is."""
    own = [
        answered
        for number, here in enumerate(passes)
        if here.likeness is None and (answered := _answered(number, here)) is not None
    ]
    for one in own:
        siblings = [
            other
            for other in own
            if other is not one and other.here.module == one.here.module and other.knows_its_classes
        ]
        best = max(siblings, key=lambda o: o.right, default=None)
        told = _under_other_names(one, best) if best is not None else None
        if told is not None:
            return told
    return None


def _answered(number: int, here: Pass) -> _Answered | None:
    answers, wanted = here.answers, here.wanted
    if answers is None or wanted is None or kind_of(answers, wanted) != "classes":
        return None
    if len(answers) < LEAST_ROWS:
        return None
    one = answers[:, 0]
    chosen = answers.argmax(1) if answers.shape[1] > 1 else one > cut(one)
    return _Answered(number, here, chosen.astype(np.int64), wanted.astype(np.int64))


def _under_other_names(one: _Answered, sibling: _Answered) -> RecodedLabels | None:
    learnt, kept = slice(0, None, 2), slice(1, None, 2)
    names = _names(one.chosen[learnt], one.wanted[learnt])
    changed = {answer: name for answer, name in names.items() if answer != name}
    if len(set(names.values())) < len(names) or len(changed) < 2:
        return None
    chosen, wanted = one.chosen[kept], one.wanted[kept]
    renamed = np.array([names.get(c, -1) for c in chosen.tolist()])
    before, after = float((chosen == wanted).mean()), float((renamed == wanted).mean())
    surely = wilson(after * len(wanted), len(wanted))[0]
    at_most = wilson(before * len(wanted), len(wanted))[1]
    if surely <= at_most or after < sibling.right - NEAR_REFERENCE:
        return None
    if sibling.right <= at_most:
        return None
    known = set(sibling.here.lines)
    lines = one.here.lines
    ordered = [*(s for s in lines if s not in known), *(s for s in lines if s in known)]
    return RecodedLabels(
        number=one.number,
        rows=len(one.wanted),
        score=one.right,
        renamed=after,
        judged=len(wanted),
        reference=sibling.right,
        names=tuple(sorted(changed.items())),
        sites=tuple(ordered[:SHOWN_LINES]),
    )


def _names(chosen: Classes, wanted: Classes) -> dict[int, int]:
    """Of each answer, the label that it stands beside most often."""
    names: dict[int, int] = {}
    for answer in np.unique(chosen).tolist():
        beside = wanted[chosen == answer]
        if len(beside) >= LEAST_OF_A_CLASS:
            names[answer] = int(np.bincount(beside).argmax())
    return names
