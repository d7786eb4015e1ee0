"""Scripts that die in the loop around the model: names, graphs, devices, checkpoints, calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from crash_runs import assert_named_by_one_finding, died, explanations

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 3)
"""
CARRIED = (
    HEAD
    + """
cell = nn.GRUCell(5, 4)
state = torch.zeros(2, 4)
for step in range(3):
    state = cell(torch.randn(2, 5), state)  # ROOT
    loss = state.sum()
    loss.backward()
"""
)
BEFORE_THE_LOOP = (
    HEAD
    + """
scores = torch.tanh(model(torch.randn(2, 5)))  # ROOT
for step in range(3):
    loss = (scores * scores).sum()
    loss.backward()
"""
)
OVERWRITTEN = (
    HEAD
    + """
loss = nn.MSELoss()
for step in range(2):
    loss = loss(model(torch.randn(2, 5)), torch.zeros(2, 3))  # ROOT
    loss.backward()
"""
)
OF_PYTHON = (
    HEAD
    + """
len = 5  # ROOT
print(len([1, 2]))
"""
)
NOT_KEPT = (
    HEAD
    + """
device = torch.device("meta")
model = model.to(device)
x = torch.randn(2, 5)
x.to(device)  # ROOT
model(x)
"""
)
PREFIX = (
    HEAD
    + """
saved = {"module." + key: value for key, value in model.state_dict().items()}
model.load_state_dict(saved)  # ROOT
"""
)
WIDTHS = (
    HEAD
    + """
saved = nn.Linear(5, 4).state_dict()
model.load_state_dict(saved)  # ROOT
"""
)
NUMPY = (
    HEAD
    + """
scores = model(torch.randn(2, 5))
print(scores.numpy())  # ROOT
"""
)
CLASS_CALLED = (
    HEAD
    + """
scores = model(torch.randn(2, 5))
loss = nn.MSELoss(scores, torch.zeros(2, 3))  # ROOT
"""
)
OTHER_LIBRARY = (
    HEAD
    + """
scores = model(torch.randn(2, 5))
print(scores.astype("float32"))  # ROOT
"""
)
WRONG_ARGUMENTS = (
    HEAD
    + """
optimizer = torch.optim.SGD(model.parameters(), learning_rate=0.1)  # ROOT
"""
)
PER_SAMPLE = (
    HEAD
    + """
criterion = nn.MSELoss(reduction="none")  # ROOT
loss = criterion(model(torch.randn(2, 5)), torch.zeros(2, 3))
loss.backward()
"""
)
TAKEN_OUT = (
    HEAD
    + """
loss = torch.tensor(model(torch.randn(2, 5)).sum().item())  # ROOT
loss.backward()
"""
)
ONE_ASTRAY = (
    HEAD
    + """
x = torch.randn(2, 3)
weights = torch.ones(3, device="meta")  # ROOT
scaled = x * weights
"""
)
CHOSEN = (
    HEAD
    + """
y = torch.zeros(4)
scores = model(torch.randn(4, 5))
picked = scores.argmax(1)  # ROOT
right = (picked == y).float()
loss = 1 - right.mean()
loss.backward()
"""
)
RESULT_CALLED = (
    HEAD
    + """
def scale(x):
    return x * 2

y = scale(torch.ones(3))(torch.ones(3))  # ROOT
"""
)
ATTRIBUTE_CALLED = (
    HEAD
    + """
x = torch.ones(3)
y = x.data()  # ROOT
"""
)
LIST_OF_GRAPHS = (
    HEAD
    + """
import numpy as np
history = []
for step in range(3):
    loss = model(torch.randn(2, 5)).sum()
    history.append(loss)  # ROOT
print(np.mean(history))
"""
)
TWO_LOSSES = (
    HEAD
    + """
critic = nn.Linear(3, 1)
made = torch.tanh(model(torch.randn(4, 5)))  # ROOT
loss_a = critic(made).mean()
loss_a.backward()
loss_b = -critic(made).mean()
loss_b.backward()
"""
)
LAYER_ASTRAY = (
    HEAD
    + """
part = nn.Linear(3, 2, device="meta")  # ROOT
whole = nn.Sequential(model, part)
whole(torch.randn(2, 5))
"""
)
CASES = {
    "state carried over": (CARRIED, "loop.backward-twice", "state = state.detach()"),
    "made before the loop": (BEFORE_THE_LOOP, "loop.backward-twice", "inside of the loop"),
    "its own result": (OVERWRITTEN, "loop.shadowed-name", "a name of its own"),
    "a function of Python": (OF_PYTHON, "loop.shadowed-name", "a name of its own"),
    "copy not kept": (NOT_KEPT, "loop.device-mismatch", "x = x.to(device)"),
    "prefix": (PREFIX, "loop.state-dict-mismatch", "removeprefix('module.')"),
    "other widths": (WIDTHS, "loop.state-dict-mismatch", "sizes"),
    "numpy": (NUMPY, "loop.api-misuse", "scores.detach().numpy()"),
    "class called": (CLASS_CALLED, "loop.api-misuse", "nn.MSELoss()("),
    "method of arrays": (OTHER_LIBRARY, "loop.api-misuse", "numpy()"),
    "keyword": (WRONG_ARGUMENTS, "loop.api-misuse", "learning_rate"),
    "per sample": (PER_SAMPLE, "loss.not-scalar", "loss.mean()"),
    "no graph": (TAKEN_OUT, "loss.not-scalar", "item"),
    "one tensor astray": (ONE_ASTRAY, "loop.device-mismatch", 'weights = weights.to("cpu")'),
    "one layer astray": (LAYER_ASTRAY, "loop.device-mismatch", "Move the model"),
    "chosen": (CHOSEN, "loss.not-scalar", "scores.argmax(1)"),
    "result called": (RESULT_CALLED, "loop.api-misuse", "brackets behind it"),
    "attribute called": (ATTRIBUTE_CALLED, "loop.api-misuse", "brackets behind it"),
    "list of graphs": (LIST_OF_GRAPHS, "loop.api-misuse", "history.append(loss.item())"),
    "two losses": (TWO_LOSSES, "loop.backward-twice", "made.detach()"),
}


LOOP_VARIABLE = (
    HEAD
    + """
floor = 0.02
for number, floor in enumerate(["first", "second"]):  # ROOT
    print(number, floor)
loss = model(torch.randn(2, 5)).sum()
loss = (loss - floor).abs()
"""
)
SETTINGS = (
    HEAD
    + """
from torch.utils.data import DataLoader, RandomSampler

rows = list(range(20))
loader = DataLoader(rows, sampler=RandomSampler(rows), shuffle=True)  # ROOT
"""
)
CASES |= {
    "loop variable": (LOOP_VARIABLE, "loop.shadowed-name", "another variable"),
    "settings": (SETTINGS, "loop.api-misuse", "mutually exclusive"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_cause_its_line_and_the_fix_are_named_by_one_finding(name: str, tmp_path: Path) -> None:
    assert_named_by_one_finding(tmp_path, *CASES[name])


OWN_ERRORS = {
    "raise": "raise ValueError('shapes (3, 4) and (3, 5) do not fit')",
    "assert": "assert model(torch.randn(2, 5)).shape == (2, 4), 'shape'",
    "division": "1 / 0",
    "own type error": "raise TypeError('cannot multiply')",
    "stop": "next(iter([]))",
}


@pytest.mark.parametrize("name", OWN_ERRORS)
def test_an_error_of_the_script_itself_is_not_explained_away(name: str, tmp_path: Path) -> None:
    run = died(tmp_path, HEAD + OWN_ERRORS[name] + "\n")
    assert run.ending.crash is not None
    assert explanations(run) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said_as_such(tmp_path: Path) -> None:
    (found,) = explanations(died(tmp_path, HEAD + "model.cuda()\n"))
    assert found.fault == "loop.device-mismatch" and found.fix is not None
    assert "is_available" in found.fix.summary
