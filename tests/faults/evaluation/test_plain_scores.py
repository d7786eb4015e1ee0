"""Scores in plain Python and NumPy, loops that never train, and answers that ignore their input:
each program as it goes wrong, and as it goes right.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.faults import read
from sawbones.store import read_run

RECORD = """
import sys
from pathlib import Path
from sawbones.observe.launch import run_script
from sawbones.observe.options import diagnosing
run_script(sys.argv[1], [], Path(sys.argv[2]), diagnosing())
"""
HEAD = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
centers = torch.randn(4, 10) * 1.2
y = torch.randint(0, 4, (700,))
x = centers[y] + torch.randn(700, 10)
xtr, ytr, xte, yte = x[:500], y[:500], x[500:], y[500:]
"""
MODEL = """
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
"""
TRAIN = """
opt = torch.optim.Adam(net.parameters(), lr=0.01)
crit = nn.CrossEntropyLoss()
for epoch in range(4):
    for i in range(0, 500, 50):
        opt.zero_grad()
        loss = crit(net(xtr[i : i + 50]), ytr[i : i + 50])
        {backward}
        opt.step()
"""
SCORE = """
    right = seen = 0
    with torch.no_grad():
        for i in range(0, 200, 40):
            {again}
            guesses = net(xte[i : i + 40]).argmax(1).tolist()
            for guess, label in zip(guesses, yte[i : i + 40].tolist()):
                right += guess == label
                seen += 1
    print(f"epoch {{epoch}} accuracy {{right / seen:.3f}}")
"""
PAIRS = """
    found = []
    with torch.no_grad():
        for i in range(0, 200, 40):
            found.append(net(xte[i : i + 40]).argmax(1).numpy())
    print("accuracy", (np.concatenate(found){column} == yte.numpy()).mean())
"""
LAST_LOSS = """
    total = 0.0
    with torch.no_grad():
        for i in range(0, 200, 40):
            value = crit(net(xte[i : i + 40]), yte[i : i + 40])
            {add}
    print("loss", {printed})
"""
BLIND = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(10, 32), nn.Linear(32, 4)

    def forward(self, x):
        {lost}
        return {answer}(self.outer(torch.relu(self.inner(x))))


net = Net()
"""
LEARNS = TRAIN.format(backward="loss.backward()")


def _blind(lost: str, answer: str = "") -> str:
    return HEAD + BLIND.format(lost=lost, answer=answer) + LEARNS


PROGRAMS = {
    "evaluation.metric-averaging": (
        HEAD + MODEL + LEARNS + SCORE.format(again="right = seen = 0"),
        HEAD + MODEL + LEARNS + SCORE.format(again="pass"),
    ),
    "evaluation.metric-averaging of a loss": (
        HEAD + MODEL + LEARNS + LAST_LOSS.format(add="pass", printed="value.item()"),
        HEAD + MODEL + LEARNS + LAST_LOSS.format(add="total += value.item()", printed="total / 5"),
    ),
    "evaluation.metric-threshold": (
        HEAD + MODEL + LEARNS + PAIRS.format(column="[:, None]"),
        HEAD + MODEL + LEARNS + PAIRS.format(column=""),
    ),
    "loop.no-step": (HEAD + MODEL + TRAIN.format(backward="pass"), HEAD + MODEL + LEARNS),
    "evaluation.collapsed-prediction": (_blind("x = torch.ones_like(x)"), _blind("pass")),
    "model.softmax-axis": (
        _blind("pass", "nn.Softmax(dim=0)")
        .replace("crit(net(", "crit(torch.log(1e-9 + net(")
        .replace("i + 50]), ytr", "i + 50])), ytr"),
        _blind("pass"),
    ),
}


def _found(folder: Path, program: str) -> set[str]:
    (folder / "train.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-c", RECORD, str(folder / "train.py"), str(folder / "run")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = read(read_run(folder / "run")).findings
    return {f.fault for f in found if f.status in ("likely", "proven")}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_broken_program_is_named_and_the_healthy_one_is_not(tmp_path: Path, name: str) -> None:
    broken, healthy = PROGRAMS[name]
    for folder in ("broken", "healthy"):
        (tmp_path / folder).mkdir()
    assert name.split()[0] in _found(tmp_path / "broken", broken)
    assert _found(tmp_path / "healthy", healthy) == set()


UPDATES = """
import torch

torch.manual_seed(0)
x = torch.randn(300, 5)
y = x @ torch.randn(5, 1) + 0.5
params = [torch.zeros(5, 1).requires_grad_(), torch.zeros(1).requires_grad_()]
for step in range(40):
    loss = ((x @ params[0] + params[1] - y) ** 2).mean()
    grads = torch.autograd.grad(loss, params)
    {update}
"""
IN_PLACE = """
    with torch.no_grad():
        for p, g in zip(params, grads):
            p -= 0.05 * g
"""
REPLACED = "params = [(p - 0.05 * g).detach().requires_grad_() for p, g in zip(params, grads)]"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("update", [IN_PLACE, REPLACED], ids=["in place", "replaced"])
def test_a_loop_that_asks_for_its_gradients_is_seen_step_by_step(
    tmp_path: Path, update: str
) -> None:
    assert _found(tmp_path, UPDATES.format(update=update)) == set()
    run = read_run(tmp_path / "run")
    assert run.num_steps >= 39  # the last update may have no pass after it to show it
    assert run.losses[-1] < 0.1 * run.losses[0]
    assert len(run.tensors) == 2
