"""A script that fails after the time for watching it is up is not called healthy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sawbones.diagnosis.later import ToTheEnd, cut_by_time
from sawbones.schema import Ending, Run
from sawbones.trials.bench import Bench, Patient

STEPS = 12
TRAINING = f"""
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({STEPS}):
    optimizer.zero_grad()
    model(torch.rand(4, 3)).mean().backward()
    optimizer.step()
"""
FAILS = TRAINING + "scores = {'loss': 1.0}\nprint(scores['accuracy'])\n"


def _watched(num_steps: int) -> Run:
    steps = {"step": np.arange(num_steps, dtype=float)}
    return Run("train.py", (), "", {}, Ending("budget", message="seconds"), steps=steps)


def _at_the_end(folder: Path, source: str, watched: Run, beside: bool = False) -> Run:
    (folder / "train.py").write_text(source)
    with Bench(Patient("train.py", (), folder), 200.0) as bench:
        return ToTheEnd(bench, watched, 80.0, beside=beside).joined(watched)


def test_an_exception_behind_the_last_watched_step_is_found(tmp_path):
    run = _at_the_end(tmp_path, FAILS, _watched(5))
    assert (run.ending.kind, run.ending.exception) == ("exception", "KeyError")
    assert run.ending.crash is not None and run.num_steps == 5


def test_it_is_found_beside_the_trials_as_well(tmp_path):
    run = _at_the_end(tmp_path, FAILS, _watched(5), beside=True)
    assert run.ending.exception == "KeyError"


def test_one_that_comes_earlier_than_what_was_watched_is_not_the_scripts(tmp_path):
    watched = _watched(STEPS + 1)
    assert _at_the_end(tmp_path, FAILS, watched) == watched


def test_a_script_that_ends_well_adds_nothing(tmp_path):
    watched = _watched(5)
    assert _at_the_end(tmp_path, TRAINING, watched) == watched


def test_a_number_of_steps_that_was_asked_for_is_no_cut():
    assert cut_by_time(_watched(3))
    assert not cut_by_time(Run("train.py", (), "", {}, Ending("budget", message="steps")))
    assert not cut_by_time(Run("train.py", (), "", {}, Ending("finished", 0)))
