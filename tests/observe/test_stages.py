"""Which steps of a later stage are looked at."""

from __future__ import annotations

from sawbones.observe.stages import DEEP_AFTER, LATE, MAX_STAGES, Stages


def test_a_model_that_begins_later_is_looked_at_when_it_begins():
    stages = Stages()
    for step in range(300):
        stages.stepped(0, step)
    assert not stages.deep_steps
    stages.stepped(1, 300)
    stages.stepped(1, 301)
    assert stages.deep_steps == {300 + later for later in DEEP_AFTER}


def test_optimizers_that_take_turns_are_one_stage_and_folds_are_not_all_looked_at():
    turns = Stages()
    for step in range(100):
        turns.stepped(step % 3, step)
    assert not turns.deep_steps
    folds = Stages()
    for fold in range(10):
        folds.stepped(fold, (LATE + 1) * fold)
    assert len(folds.deep_steps) <= MAX_STAGES * len(DEEP_AFTER)
