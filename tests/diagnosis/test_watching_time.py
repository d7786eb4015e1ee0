"""How long a script is watched: to its end where the budget allows, unless it is known to be ill."""

from __future__ import annotations

from pathlib import Path

from sawbones.diagnosis import Diagnosis, diagnose_script

BUDGET = 20.0
TRAINING = """
import time
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = (x @ torch.randn(6, 3)).argmax(1)
net = nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
began = time.monotonic()
step = 0
while time.monotonic() - began < {seconds}:
    rows = torch.arange(step * 32, step * 32 + 32) % 256
    step += 1
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    optimizer.step()
    time.sleep(0.1)
print("the end")
"""
NEVER_CLEARED = TRAINING.replace("    optimizer.zero_grad()\n", "")


def _diagnosed(folder: Path, source: str, only: str, seconds: float = BUDGET) -> Diagnosis:
    (folder / "train.py").write_text(source)
    return diagnose_script("train.py", working_folder=folder, seconds=seconds, only=only)


def test_a_script_that_needs_more_than_half_of_the_budget_is_watched_to_its_end(tmp_path):
    source = TRAINING.format(seconds=0.6 * BUDGET)
    seen = _diagnosed(tmp_path, source, "loop.no-zero-grad")
    assert seen.run.ending.kind == "finished" and "the end" in seen.output
    assert seen.report.verdict == "healthy"


def test_one_that_is_known_to_be_ill_leaves_half_of_it_to_the_trials(tmp_path):
    source = NEVER_CLEARED.format(seconds=1000)
    seen = _diagnosed(tmp_path, source, "loop.no-zero-grad")
    assert (seen.run.ending.kind, seen.run.ending.message) == ("budget", "seconds")
    assert seen.run.seconds < 0.75 * BUDGET
    assert seen.report.verdict == "sick"


def test_one_that_is_still_going_when_the_time_is_up_is_not_judged(tmp_path):
    seen = _diagnosed(tmp_path, TRAINING.format(seconds=1000), "loop.no-zero-grad", 8.0)
    assert seen.run.num_steps > 20
    assert seen.report.verdict == "inconclusive"
    (why,) = (note for note in seen.report.notes if "before the script ended" in note)
    assert why.endswith("more: sawbones diagnose --seconds N")
