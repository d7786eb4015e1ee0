"""A new head fitted to a body in evaluation mode is meant so; the same body left behind is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.loop.train_in_eval_mode.check import check

SCRIPT = """
import torch
from torch import nn
import torch.nn.functional as F

x = torch.randn(240, 12)
y = (x[:, :3].sum(1) > 0).long()
body = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU())
first, second = nn.Linear(24, 12), nn.Linear(24, 2)

def fit(model, params, targets, loss_of):
    optimizer = torch.optim.SGD(params, lr=0.05)
    for rows, wanted in zip(x.split(24), targets.split(24)):
        optimizer.zero_grad()
        loss_of(model(rows), wanted).backward()
        optimizer.step()

whole = nn.Sequential(body, first)
fit(whole, whole.parameters(), x, F.mse_loss)
body.eval()
task = nn.Sequential(body, second)
task.eval()
with torch.no_grad():
    task(x)
fit(task, {params}, y, F.cross_entropy)
"""


@pytest.mark.parametrize(
    ("params", "said"), [("second.parameters()", []), ("task.parameters()", ["proven"])]
)
def test_what_the_steps_in_evaluation_mode_change(
    tmp_path: Path, params: str, said: list[str]
) -> None:
    run = died(tmp_path, SCRIPT.replace("{params}", params))
    assert [finding.status for finding in check(run)] == said
