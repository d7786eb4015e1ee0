"""An evaluation that keeps its gradients is told by the graph: no backward pass comes through it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sawbones.observe.signals.graded import GradedEvaluations
from sawbones.observe.sites import SiteFinder

ROWS = torch.arange(120.0).reshape(40, 3)


class _Loop:
    """A script with its own clock: every call is an event and a batch."""

    def __init__(self) -> None:
        self.log = GradedEvaluations(SiteFinder())
        self.model = nn.Linear(3, 1)
        self.step = self.number = 0

    def call(self, rows: Tensor) -> tuple[Tensor, bool]:
        self.number += 1
        taken = self.log.called(self.step, (rows,), (self.number, self.number))
        result = self.model(rows)
        self.log.returned(result, taken)
        return result, taken

    def learn(self, loss: Tensor) -> bool | None:
        stood = self.log.settle(loss, (self.number + 1, self.number + 1))
        loss.backward()
        self.step += 1
        return stood


def _train(loop: _Loop, steps: int) -> list[bool | None]:
    return [loop.learn(loop.call(ROWS[:8])[0].sum()) for _ in range(steps)]


def test_a_pass_over_new_rows_at_the_end_is_an_evaluation() -> None:
    loop = _Loop()
    assert _train(loop, 8) == [None] * 8
    _, taken = loop.call(ROWS[20:])
    assert taken and loop.log.finish()
    assert loop.log.record["events"][0][0] == 9


def test_passes_between_epochs_stand_once_training_goes_on_without_them() -> None:
    loop = _Loop()
    for _ in range(2):
        _train(loop, 8)
        for start in (20, 30):
            assert loop.call(ROWS[start : start + 10])[1]
    assert loop.log.record["events"] == [(9, 11)]  # the second one is still open
    assert loop.log.finish() and len(loop.log.record["batches"]) == 2


def test_a_second_stage_of_training_is_none() -> None:
    loop = _Loop()
    _train(loop, 8)
    stood, taken = [], []
    for start in (20, 24, 28):
        result, is_taken = loop.call(ROWS[start : start + 4])
        taken.append(is_taken)
        stood.append(loop.learn(result.sum()))
    assert taken == [True, False, False] and stood == [False, None, None]
    assert not loop.log.finish() and not loop.log.record["events"]


def test_rows_that_were_trained_on_make_no_evaluation() -> None:
    loop = _Loop()
    _train(loop, 8)
    assert not loop.call(ROWS[:8])[1]


def test_a_generator_that_is_cut_off_in_every_step_is_part_of_training() -> None:
    loop = _Loop()
    for number in range(12):
        _, taken = loop.call(torch.full((4, 3), 200.0 + number))
        assert not taken
        loop.learn(loop.call(ROWS[:8])[0].sum())
    assert not loop.log.finish()
