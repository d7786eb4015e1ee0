"""A run that is stopped between a batch and its backward pass has not evaluated on that batch."""

from __future__ import annotations

import pytest

from sawbones.schema import Batch, Ending, Event, Run
from sawbones.stats.splits import told_apart


@pytest.mark.parametrize(
    ("ending", "phase", "evaluated"),
    [("budget", "train", 0), ("budget", "eval", 0), ("finished", "eval", 1)],
)
def test_the_last_batch_of_a_stopped_run_was_for_training(
    ending: str, phase: str, evaluated: int
) -> None:
    batches = [Batch(step, 0, "train", "loader:0", 0.0, (), (step,)) for step in range(6)]
    events = tuple(Event(step, "backward", step, 0, "train", 0.0) for step in range(6))
    batches.append(Batch(6, 0, phase, "loader:0", 0.0, (), (3,), 1))
    run = Run("train.py", (), "", {}, Ending(ending), events=events, batches=tuple(batches))
    assert len(told_apart(run)[1]) == evaluated
