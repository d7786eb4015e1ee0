"""The notable symptoms on curves drawn by hand: one that shows each, one that comes close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn import classes, drawn, falling, noisy

from sawbones import symptoms
from sawbones.schema import Ending, Run
from sawbones.schema.loader import Loader
from sawbones.schema.run import Batch
from sawbones.stats.protocol import epoch_starts

STEPS = 120
LOADER = {"loaders": [{"index": 0, "batch_size": 32, "num_workers": 0, "length": 30}]}


def spiked(height: float) -> np.ndarray:
    losses = falling(STEPS)
    losses[70] = height
    return losses


def sorted_epochs(rise: float) -> np.ndarray:
    return noisy(np.tile(np.linspace(1.0, 1.0 + rise, 20), 6))


def plateau(steps: int) -> np.ndarray:
    rest = STEPS - steps
    return noisy(np.concatenate([np.full(steps, 1.38), 0.1 + 1.2 * np.exp(-np.arange(rest) / 4)]))


def evaluated(*values: float) -> dict[str, Any]:
    at = np.linspace(20, STEPS - 1, len(values)).astype(int)
    return {"evaluations": list(zip(at.tolist(), values, strict=True))}


def repeated(seeded: list[str], relative: float) -> dict[str, Any]:
    differs = {"what": "loss", "step": 7, "first": 1.25, "second": 1.5, "relative": relative}
    return {"facts": {"twin_run": {"steps": 25, "seeded": seeded, "differs": differs}}}


def waiting(ms: float) -> dict[str, Any]:
    return {"facts": LOADER, "columns": {"data_wait_ms": np.full(STEPS, ms)}}


def using(mb: np.ndarray) -> dict[str, Any]:
    return {"columns": {"memory_mb": mb}}


def taking(ms: np.ndarray) -> dict[str, Any]:
    return {"columns": {"step_ms": noisy(ms, 0.1)}}


CASES = {
    "learns-slowly": (
        drawn(noisy(np.linspace(1.5, 1.25, STEPS))),
        drawn(noisy(np.linspace(1.5, 0.9, STEPS))),
    ),
    "spikes": (drawn(spiked(6.0)), drawn(spiked(1.3))),
    "saw-tooth": (drawn(sorted_epochs(1.0), epoch=20), drawn(sorted_epochs(0.1), epoch=20)),
    "plateau-then-jump": (drawn(plateau(50)), drawn(plateau(15))),
    "overfits": (
        drawn(falling(), **evaluated(0.9, 0.8, 0.9, 1.0, 1.1, 1.3)),
        drawn(falling(), **evaluated(0.9, 0.85, 0.82, 0.8, 0.81, 0.84)),
    ),
    "too-good": (drawn(noisy(np.r_[[1.4] * 8, [0.005] * 112], 0.001)), drawn(falling())),
    "evaluation-disagrees": (
        drawn(falling(), **evaluated(3.0, 3.0)),
        drawn(falling(), **evaluated(0.8, 0.4)),
    ),
    "not-repeatable": (
        drawn(falling(), **repeated(["torch"], 0.2)),
        drawn(falling(), **repeated(["torch"], 1e-7)),
    ),
    "one-class": (
        drawn(
            falling(), facts=classes({0: (100, 100, 400), **dict.fromkeys((1, 2, 3), (100, 0, 0))})
        ),
        drawn(falling(), facts=classes({0: (100, 99, 380), 1: (300, 9, 20)})),
    ),
    "waits-for-data": (drawn(falling(), **waiting(6.0)), drawn(falling(), **waiting(3.0))),
    "memory-grows": (
        drawn(falling(), **using(np.linspace(500.0, 1000.0, STEPS))),
        drawn(falling(), **using(np.r_[np.linspace(500.0, 900.0, 40), np.full(80, 900.0)])),
    ),
    "slows-down": (
        drawn(falling(), **taking(np.linspace(5.0, 20.0, STEPS))),
        drawn(falling(), **taking(np.r_[np.full(100, 10.0), np.full(20, 13.0)])),
    ),
}


def names(run: Run) -> set[str]:
    return {symptom.symptom for symptom in symptoms.read(run, strict=True).symptoms}


def test_every_notable_symptom_has_a_case() -> None:
    assert set(CASES) == {w.symptom for w in symptoms.all_symptoms() if w.cls == "notable"}


@pytest.mark.parametrize("name", CASES)
def test_it_is_seen_where_it_is(name: str) -> None:
    assert name in names(CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_it_is_not_seen_where_something_comes_close(name: str) -> None:
    close = CASES[name][1]
    assert name not in names(close)
    assert name not in {item.symptom for item in symptoms.read(close).could_not_see}


def test_a_script_that_seeds_nothing_promises_nothing() -> None:
    run = drawn(falling(), **repeated([], 0.2))
    why = {item.symptom: item.why for item in symptoms.read(run).could_not_see}
    assert why["not-repeatable"] == "the script seeds nothing"


def test_times_are_not_judged_while_every_operator_is_listened_to() -> None:
    slow = {"facts": {**LOADER, "operators_heard": True}}
    run = drawn(falling(), columns={"data_wait_ms": np.full(STEPS, 6.0)}, **slow)
    why = {item.symptom: item.why for item in symptoms.read(run).could_not_see}
    assert why["waits-for-data"] == why["slows-down"]


def test_epochs_are_known_where_only_some_batches_were_kept() -> None:
    kept = [*range(25), 50, 100, 150, 200]
    batches = tuple(
        Batch(step, step, "train", "loader:0", 0.0, (), epoch=step // 30, index=step)
        for step in kept
    )
    steps = {"step": np.arange(240, dtype=np.float64)}
    run = Run("train.py", (), "", {}, Ending("finished"), steps=steps, batches=batches)
    known = replace(run, loaders=(Loader(0, length=30),))
    assert epoch_starts(known) == [0, 30, 60, 90, 120, 150, 180, 210]
    otherwise = replace(run, loaders=(Loader(0, length=20),))  # two batches a step, say
    assert epoch_starts(otherwise) == epoch_starts(run) == [0, 50, 100, 150, 200]
