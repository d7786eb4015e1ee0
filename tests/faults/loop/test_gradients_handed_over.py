"""Losses and their passes: gradients of torch.func that an optimizer is handed, the scores of CTC, and
stages with another loss.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crash_runs import died

from sawbones import faults

HANDED = """
import torch
from torch.func import grad_and_value

rows = torch.randn(64, 3)
wanted = rows @ torch.tensor([1.0, -2.0, 0.5])
weights = {"w": torch.zeros(3)}
opt = torch.optim.Adam(weights.values(), 0.1)
step = grad_and_value(lambda p, x, y: ((x @ p["w"] - y) ** 2).mean())
for _ in range(12):
    found, value = step(weights, rows, wanted)
    weights["w"].grad = found["w"]
    opt.step()
"""

TWICE = """
import torch
from torch.func import grad

net = torch.nn.Linear(3, 1)
rows = torch.randn(64, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(6):
    inner = grad(lambda w: ((rows @ w.T) ** 2).mean())(net.weight)
    loss = (rows @ (net.weight - 0.1 * inner).T - 1).square().mean() + net.bias.square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

CTC = """
import torch
from torch import nn

layer, rnn, head = nn.Linear(4, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 5)
parameters = [*layer.parameters(), *rnn.parameters(), *head.parameters()]
opt = torch.optim.SGD(parameters, 0.01)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.rnn, self.head = layer, rnn, head

    def forward(self, x):
        return self.head(self.rnn(self.layer(x))[0]).log_softmax(-1)


net = Net()
for _ in range(3):
    said = net(torch.randn(6, 20, 4)).permute(1, 0, 2)
    wanted, lengths = torch.randint(1, 5, (6, 5)), torch.full((6,), 20)
    loss = nn.functional.ctc_loss(said, wanted, lengths, torch.full((6,), 5))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_the_loss_of_gradients_that_an_optimizer_is_handed_is_recorded(tmp_path: Path) -> None:
    run = died(tmp_path, HANDED)
    assert run.num_steps == 12 and np.isfinite(run.losses).all()
    assert run.losses[-1] < run.losses[0]


def test_a_gradient_inside_of_a_step_is_no_pass_of_its_own(tmp_path: Path) -> None:
    run = died(tmp_path, TWICE)
    assert len(list(run.of_kind("backward"))) == run.num_steps == 6


def test_examples_of_ctc_are_the_second_dimension(tmp_path: Path) -> None:
    run = died(tmp_path, CTC)
    shares = [i.other_examples for d in run.deep for i in d.influence]
    assert shares and shares == pytest.approx([0.0] * len(shares))


STAGES = """
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
rows = torch.randn(32, 4)
wanted = rows.sum(1, keepdim=True)
for _ in range(40):
    opt.zero_grad()
    nn.functional.mse_loss(net(rows), wanted).backward()
    opt.step()
for _ in range(20):
    opt.zero_grad()
    (50 + net(rows).square().mean()).backward()
    opt.step()
"""


@pytest.mark.parametrize("spiky", [False, True])
def test_a_stage_with_another_loss_is_no_spike(tmp_path: Path, spiky: bool) -> None:
    one_line = "for n in range(60):\n    opt.zero_grad()\n"
    one_line += "    (50 * (n >= 40) + nn.functional.mse_loss(net(rows), wanted)).backward()\n"
    head = STAGES[: STAGES.index("for _")]
    script = head + one_line + "    opt.step()\n" if spiky else STAGES
    found = faults.read(died(tmp_path, script), "loop.loss-spike").findings
    assert bool(found) == spiky
