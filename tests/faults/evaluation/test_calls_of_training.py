"""Calls without gradients that are a part of training, beside evaluations in eval mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from crash_runs import died

from sawbones import faults
from sawbones.faults.evaluation.metric_averaging.check import _several_per_step
from sawbones.schema.evaluation import Node

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = torch.randn(96, 6)
labels = (rows[:, 0] > 0).long()
train = DataLoader(TensorDataset(rows[:64], labels[:64]), 16, shuffle=True)
held = DataLoader(TensorDataset(rows[64:], labels[64:]), 16)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(6):
    net.train()
    for x, y in train:
        if epoch > 2:
            with torch.no_grad():
                centre = net(NOISY).numpy().mean()
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    net.MODE()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in held)
    print(epoch, hits / 32)
"""


@pytest.mark.parametrize("noisy", ["x", "x + 0.01 * torch.randn_like(x)"])
@pytest.mark.parametrize(("mode", "fires"), [("eval", False), ("train", True)])
def test_a_batch_that_is_trained_on_next_is_not_evaluated(
    tmp_path: Path, noisy: str, mode: str, fires: bool
) -> None:
    run = died(tmp_path, SCRIPT.replace("NOISY", noisy).replace("MODE", mode))
    assert bool(faults.read(run, "evaluation.eval-mode").findings) == fires


def test_what_is_read_once_a_step_stays_so_after_more_steps_than_are_kept() -> None:
    node = Node(0, "numpy", None, ("output",), steps=tuple(range(82, 132)), num_steps=132)
    assert not _several_per_step(replace(node, count=132))
    assert _several_per_step(replace(node, count=264))
