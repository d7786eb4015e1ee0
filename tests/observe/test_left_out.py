"""A part that was split off and is trained on all the same, beside an evaluation of new rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sawbones.faults.evaluation.wrong_split.check import _left_out
from sawbones.observe.sources.log import SourceLog
from sawbones.schema import Ending, Run

ROWS = torch.randn(800, 5, generator=torch.Generator().manual_seed(0))
NEW = torch.randn(100, 5, generator=torch.Generator().manual_seed(1))
ORDER = np.random.default_rng(0).permutation(800).tolist()


def found(held: list[Any], calls: list[tuple[str, torch.Tensor]]) -> int:
    """How many findings a script gives that holds these containers and makes these calls."""
    log = SourceLog(str)
    log.look(sys._getframe(), 0, 0)
    for phase, rows in calls:
        for batch in rows.split(100):
            log.called([("0", batch)], phase, ())
    run = Run("train.py", (), "", {}, Ending("finished"))
    return len(list(_left_out(replace(run, sources=log.record()))))


def test_training_on_both_parts_of_a_split_is_found_by_their_row_numbers() -> None:
    parts = [ORDER[:600], ORDER[600:]]
    calls = [("train", ROWS), ("eval", ROWS[ORDER[600:]]), ("eval", NEW)]
    assert found(parts, calls) == 1


def test_training_on_both_parts_of_a_split_is_found_by_the_rows_themselves() -> None:
    parts = [ROWS[:600].clone(), ROWS[600:].clone()]
    assert found(parts, [("train", ROWS), ("eval", ROWS[600:]), ("eval", NEW)]) == 1


def test_a_score_on_some_training_rows_is_none() -> None:
    assert found([ORDER[600:]], [("train", ROWS), ("eval", ROWS[600:]), ("eval", NEW)]) == 0


def test_training_on_one_part_alone_or_on_the_other_after_its_evaluation_is_none() -> None:
    parts = [ROWS[:600].clone(), ROWS[600:].clone()]
    assert found(parts, [("train", ROWS[:600]), ("eval", ROWS[600:])]) == 0
    calls = [("train", ROWS[:600]), ("eval", ROWS[600:]), ("train", ROWS), ("eval", NEW)]
    assert found(parts, calls) == 0
