"""A run that was ended in the first steps of a long warm-up has not shown the learning rate that
was meant.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

import sawbones
from sawbones.faults.optimizer.lr_too_low.check import check
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.store import read_run


def warmed_up(folder: Path) -> Run:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 16), torch.randint(4, (32,))
    with sawbones.watch(model, out=folder, options=Options(deep_steps=(), deep_every=0)):
        for step in range(40):
            optimizer.param_groups[0]["lr"] = 1e-8 * (step + 1)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return read_run(folder)


def test_only_a_run_that_came_to_its_own_end_is_judged_by_a_rate_that_still_rises(
    tmp_path: Path,
) -> None:
    run = warmed_up(tmp_path)
    assert [f.status for f in check(run)] == ["suspected"]
    cut = replace(run, ending=replace(run.ending, kind="budget"))
    assert not list(check(cut))
    steady = replace(cut, steps={**cut.steps, "lr": cut.steps["lr"] * 0 + 1e-8})
    assert list(check(steady)), "a rate that does not rise is too low however the run ended"
