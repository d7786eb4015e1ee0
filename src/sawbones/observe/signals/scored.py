"""Evaluations scored again: the answers of the model and the labels that the script read, however
its own score is made of them.

A score written in plain Python leaves torch by `.tolist()`, `.item()` or `int()` and is seen no
more. What it must be can be computed beside it, and so can what the usual mistakes make of it: the
last batch alone, all pairs of guesses and labels, the largest along the wrong axis. Which of them
the script printed is for a check to say.
"""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.sites import SiteFinder

_READS = frozenset({"tolist", "numpy", "item", "__int__", "__float__", "__index__", "__bool__"})
LABEL_READS = _READS | {"eq", "ne", "__array__", "__format__"}
_MAX_CLASSES = 64
_MAX_VALUES = 1 << 16  # scores of one evaluation
_MAX_PAIRS = 1 << 22
_MAX_EVALUATIONS = 60


class Scored:
    """`rows`: one per evaluation of which the labels of every batch are known."""

    def __init__(self, sites: SiteFinder, rows: list[dict[str, Any]]) -> None:
        self._sites = sites
        self.rows = rows
        self._step = -1
        self._done: list[tuple[torch.Tensor, torch.Tensor]] = []  # answers and labels, by batch
        self._broken = False  # a batch without labels: nothing can be said of this evaluation
        self._answers: torch.Tensor | None = None
        self._given: list[torch.Tensor] = []
        self._read: list[torch.Tensor] = []
        self._single: dict[Any, list[float]] = {}
        self._values = 0

    def called(self, step: int, is_evaluation: bool, batch: list[torch.Tensor]) -> None:
        """A model is called; `batch` is what the loader gave beside its inputs."""
        self._batch_over()
        if not is_evaluation or step != self._step:
            self._evaluation_over()
            self._step = step
        self._given = batch if is_evaluation else []

    def answered(self, answers: torch.Tensor) -> None:
        plain = answers.detach()
        rows = plain.shape[0] if plain.dim() else 1
        one = plain.numel() == rows
        classes = plain.dim() == 2 and 2 <= plain.shape[1] <= _MAX_CLASSES
        self._values += plain.numel()
        if not (one or classes) or self._values > _MAX_VALUES or len(self.rows) >= _MAX_EVALUATIONS:
            self._broken = True
            return
        self._answers = (plain.reshape(rows) if one else plain).float().clone()

    def seen(self, value: torch.Tensor, is_output: bool) -> None:
        """The script reads this tensor after the model has answered."""
        answers = self._answers
        if is_output or answers is None or self._broken:
            return
        if value.device.type != "cpu" or not value.numel():
            return
        rows = answers.shape[0]
        if value.numel() == rows and value.dim() <= 2:
            if len(self._read) < 8:
                self._read.append(value.detach().reshape(rows).double())
        elif value.numel() == 1:
            singles = self._single.setdefault(self._sites.find(), [])
            if len(singles) <= rows:
                singles.append(float(value.detach()))

    def finish(self) -> None:
        self._batch_over()
        self._evaluation_over()

    def _batch_over(self) -> None:
        answers, self._answers = self._answers, None
        read, self._read = self._read, []
        single, self._single = self._single, {}
        given, self._given = self._given, []
        if answers is None or self._broken:
            return
        rows = answers.shape[0]
        by_one = [torch.tensor(v, dtype=torch.float64) for v in single.values() if len(v) == rows]
        whole = [t.detach().reshape(rows).double() for t in given if t.numel() == rows]
        for found in (read, by_one, whole):
            labels = _one_labelling(found, answers)
            if labels is not None:
                self._done.append((answers, labels))
                return
        self._broken = True

    def _evaluation_over(self) -> None:
        batches, self._done = self._done, []
        broken, self._broken = self._broken, False
        self._values = 0
        if batches and not broken and len(self.rows) < _MAX_EVALUATIONS:
            shapes = {answers.dim() for answers, _ in batches}
            if len(shapes) == 1:
                self.rows.append({"step": self._step, **_scores(batches)})


def _one_labelling(found: list[torch.Tensor], answers: torch.Tensor) -> torch.Tensor | None:
    """The labels, where what was read leaves one choice."""
    highest = answers.shape[1] - 1 if answers.dim() == 2 else 1
    fitting = [
        t.long()
        for t in found
        if bool((t == t.round()).all()) and bool((t >= 0).all()) and bool((t <= highest).all())
    ]
    if not fitting or any(not torch.equal(fitting[0], other) for other in fitting[1:]):
        return None
    return fitting[0]


def _scores(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, Any]:
    """The share of right answers, and what it becomes by mistake."""
    labels = torch.cat([labels for _, labels in batches])
    sizes = [len(labels) for _, labels in batches]
    row: dict[str, Any] = {
        "rows": len(labels),
        "calls": len(batches),
        "sizes": [min(sizes), max(sizes)],
        "classes": batches[0][0].shape[1] if batches[0][0].dim() == 2 else 1,
        "class_0": _share(labels == 0),
    }
    if row["classes"] > 1:
        ways = {"largest": [answers.argmax(1) for answers, _ in batches]}
        row["by_column"] = _by_column(batches)
    else:
        ways = {
            "over_zero": [(answers > 0).long() for answers, _ in batches],
            "over_half": [(answers > 1 / 2).long() for answers, _ in batches],
            "whole_part": [answers.trunc().long() for answers, _ in batches],
        }
    for way, guesses in ways.items():
        row[way] = _ways(guesses, [labels for _, labels in batches])
    return row


def _ways(guesses: list[torch.Tensor], labels: list[torch.Tensor]) -> dict[str, Any]:
    every, wanted = torch.cat(guesses), torch.cat(labels)
    made: dict[str, Any] = {
        "all": _share(every == wanted),
        "batches": [_share(g == y) for g, y in zip(guesses, labels, strict=True)][-200:],
    }
    if len(every) ** 2 <= _MAX_PAIRS:
        made["pairs"] = _share(every[:, None] == wanted[None])
    return made


def _by_column(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """The share of hits where the largest is taken down the rows of each batch."""
    hits = 0
    for answers, labels in batches:
        guesses = answers.argmax(0)
        shared = min(len(guesses), len(labels))
        hits += int((guesses[:shared] == labels[:shared]).sum())
    return hits / sum(len(labels) for _, labels in batches)


def _share(equal: torch.Tensor) -> float:
    return float(equal.double().mean())
