"""What a classifier answers where it is evaluated, counted by true class and answer.

Labels are those that a loss function is given, else the whole numbers that came out of the loader
beside the inputs. Counts stay on their device until training goes on, and are copied without
waiting.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from sawbones.observe.deep.measure import is_plain
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.scalars import ScalarReader
from sawbones.schema import Evaluated

MAX_CLASSES = 64
MAX_COUNTED = 1 << 16  # answers of one batch; of more, evenly spread ones are counted
_BY_CLASS = ("cross_entropy", "nll_loss")
_YES_OR_NO = {"binary_cross_entropy_with_logits": 0.0, "binary_cross_entropy": 0.5}


@dataclass
class _Open:
    """The evaluation that is under way."""

    step: int
    source: str
    counts: torch.Tensor  # true class x answer
    skipped: int = 1


class Answers:
    def __init__(
        self, write: Callable[[str, int, Any], None], scalars: ScalarReader, is_off: bool = False
    ) -> None:
        self._write = write
        self._scalars = scalars
        self._off = is_off
        self._open: _Open | None = None
        # scores whose labels came with the batch; the script may count on it that nobody keeps them
        self._given: weakref.ref[torch.Tensor] | None = None
        self._last: tuple[int, Evaluated] | None = None
        self._num = 0

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def answered(self, output: Any, batch: Any, step: int, source: str) -> None:
        """An evaluation called the model. Its labels may lie in the batch of the loader."""
        self._given = None
        scores = _scores(output)
        if self._off or scores is None or batch is None:
            return
        labels = _labels(batch, scores.shape[0])
        if labels is not None and labels.device == scores.device:
            self._given = weakref.ref(scores)
            self._count(scores.argmax(dim=1), labels, scores.shape[1], step, source)

    def graded(self, fn: str, scores: Any, labels: Any, step: int, source: str) -> None:
        """An evaluation called a loss function."""
        if self._off or not (isinstance(scores, torch.Tensor) and isinstance(labels, torch.Tensor)):
            return
        if (self._given is not None and self._given() is scores) or not (
            is_plain(scores) and is_plain(labels)
        ):
            return
        if scores.device != labels.device:
            return
        if fn in _BY_CLASS and scores.dim() >= 2 and 2 <= scores.shape[1] <= MAX_CLASSES:
            if (
                not labels.is_floating_point()
                and labels.numel() * scores.shape[1] == scores.numel()
            ):
                self._count(scores.argmax(dim=1), labels, scores.shape[1], step, source)
        elif fn in _YES_OR_NO and scores.numel() == labels.numel() == scores.shape[0]:
            self._count((scores > _YES_OR_NO[fn]).long(), labels, 2, step, source)

    def _count(
        self, answers: torch.Tensor, labels: torch.Tensor, classes: int, step: int, source: str
    ) -> None:
        opened = self._open
        if opened is not None and (
            (opened.step, opened.source, len(opened.counts)) != (step, source, classes)
            or opened.counts.device != labels.device
        ):
            self.settle()
            opened = None
        answers, labels = answers.detach().reshape(-1), labels.detach().reshape(-1)
        every = -(-labels.numel() // MAX_COUNTED)
        answers, labels = answers[::every], labels[::every]
        # A product of two tables of 0 and 1: what is no class, such as -100, falls out of it, and
        # unlike a histogram it is deterministic on a device. Autocast leaves doubles alone.
        names = torch.arange(classes, device=labels.device)
        asked = (labels[:, None] == names).double()
        given = (answers[:, None] == names).double()
        counts = asked.T @ given
        if opened is None:
            self._open = _Open(step, source, counts, every)
        else:
            opened.counts, opened.skipped = opened.counts + counts, max(every, opened.skipped)

    def settle(self) -> None:
        """The evaluation is over: training goes on, another begins, or the run ends."""
        opened, self._open, self._given = self._open, None, None
        if opened is None:
            return
        number, self._num = self._num, self._num + 1
        classes = len(opened.counts)

        def write(values: list[float]) -> None:
            whole = [round(value) for value in values]
            matrix = tuple(tuple(whole[i * classes :][:classes]) for i in range(classes))
            asked, right = map(sum, matrix), (matrix[i][i] for i in range(classes))
            made = Evaluated(
                opened.step, opened.source, tuple(asked), tuple(right), matrix, opened.skipped
            )
            if not sum(made.asked):
                return
            if self._last is not None:
                before, last = self._last
                self._write("evaluated", before, replace(last, matrix=()))
            self._write("evaluated", number, made)
            self._last = (number, made)

        self._scalars.submit_all(opened.counts, write)


def _scores(output: Any) -> torch.Tensor | None:
    """(examples, classes) among what a model gives back, by itself or under the name that
    Transformers gives it.
    """
    found = output if isinstance(output, torch.Tensor) else getattr(output, "logits", None)
    if found is None and isinstance(output, (tuple, list)) and output:
        found = output[0]
    if not isinstance(found, torch.Tensor) or not is_plain(found) or found.dim() != 2:
        return None
    fits = found.is_floating_point() and 2 <= found.shape[1] <= MAX_CLASSES
    return found if fits and found.numel() else None


def _labels(batch: Any, rows: int) -> torch.Tensor | None:
    """The one tensor of whole numbers with a value for each example; None where two might be."""
    found = [
        tensor
        for _, tensor in tensors_in(batch)
        if is_plain(tensor)
        and tensor.dtype in (torch.int64, torch.int32, torch.uint8)
        and tensor.numel() == rows
        and tensor.shape[:1] == (rows,)
    ]
    return found[0] if len(found) == 1 else None
