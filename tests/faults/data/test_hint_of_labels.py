"""Labels beside the wrong inputs give no hint of them; a hard task may give a weak one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sawbones.faults.data.labels_misaligned.check import check
from sawbones.observe.signals.label_probe import PairLog
from sawbones.schema import Ending, Event, Run
from sawbones.schema.labels import LabelProbe, LabelsTold
from sawbones.stats.learning import constant_answer


def probe(z: float) -> LabelsTold:
    return LabelsTold("classes", 600, 0.507 + 0.024 * z, 0.507, 0.024, z)


@pytest.mark.parametrize(
    ("trained", "stored", "found"),
    [(0.3, None, 1), (2.3, None, 0), (3.1, 0.4, 1), (0.3, 22.0, 1), (2.6, 2.9, 0), (5.0, None, 0)],
)
def test_only_pairs_without_any_hint_are_blamed(
    trained: float, stored: float | None, found: int
) -> None:
    steps = {"step": np.arange(120.0), "loss": np.full(120, 0.693), "lr": np.full(120, 1e-3)}
    found_in_set = probe(stored) if stored is not None else None
    both = LabelProbe(probe(trained), found_in_set)
    run = Run("train.py", (), "", {}, Ending("finished"), steps=steps, label_probe=both)
    assert len(list(check(run))) == found


@pytest.mark.parametrize(("pairs", "status"), [(600, "likely"), (60, "suspected")])
def test_few_trained_pairs_are_not_held_against_many_of_the_data_set(
    pairs: int, status: str
) -> None:
    steps = {"step": np.arange(120.0), "loss": np.full(120, 0.693), "lr": np.full(120, 1e-3)}
    both = LabelProbe(replace(probe(1.0), num=pairs), probe(9.0))
    run = Run("train.py", (), "", {}, Ending("finished"), steps=steps, label_probe=both)
    (finding,) = check(run)
    assert finding.status == status


def test_what_a_part_of_the_model_has_made_is_no_input() -> None:
    told = PairLog()
    labels = torch.arange(100) % 2
    told.add((torch.nn.Linear(4, 8)(torch.randn(100, 4)),), labels)
    assert told.probe() is None
    told.add((torch.randn(100, 4),), labels)
    assert told.probe() is not None


@pytest.mark.parametrize(("terms", "known"), [(1, True), (2, False)])
def test_a_sum_of_two_losses_has_no_constant_answer(terms: int, known: bool) -> None:
    events = tuple(
        Event(i, "loss", i // terms, 0, "train", 0.0, data={"fn": "nll_loss"}) for i in range(40)
    )
    run = Run("train.py", (), "", {}, Ending("finished"), events=events)
    told = LabelsTold("classes", 600, 0.5, 0.5, 0.02, 0.3, baseline=0.693)
    assert (constant_answer(run, told) is not None) == known
