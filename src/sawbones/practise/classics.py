"""Five classic broken runs, each a script of its own that repeats bit for bit: written to a folder,
run twice, and packed with what it gave, to be run without Sawbones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sawbones.handover.package import SUMS, requirements, seal, tarball, write_folder
from sawbones.schema.errors import SawbonesError

LONGEST = 300.0  # seconds
RESULTS = ("metrics.csv", "model.pt")

_CLOUDS = '''"""A small classifier of points in four clouds; broken on purpose, see README.md."""

import csv

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

centres = torch.randn(4, 8) * 2
labels = torch.arange(800) % 4
inputs = centres[labels] + torch.randn(800, 8)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

rows = []
for epoch in range(10):
    for part in torch.randperm(len(inputs)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(inputs[part]), labels[part])
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        optimizer.step()
        rows.append([len(rows), repr(loss.item()), repr(norm.item())])
    with torch.no_grad():
        accuracy = (model(inputs).argmax(-1) == labels).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, gradient norm {norm.item():.4g}, accuracy {accuracy:.3f}")

with open("metrics.csv", "w", newline="") as file:
    csv.writer(file).writerows([["step", "loss", "grad_norm"], *rows])
torch.save(model.state_dict(), "model.pt")
'''
_DISPLACEMENTS = '''"""Displacements of a tenth of a millimetre, in metres; broken on purpose, see README.md."""

import csv

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

inputs = torch.randn(4096, 8)
targets = (inputs @ torch.randn(8, 1)).tanh() * 1e-4

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
nn.init.zeros_(model[2].weight)
nn.init.zeros_(model[2].bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

rows = []
for step in range(300):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        answer = model(inputs)
    loss = ((answer.float() - targets) ** 2).mean()
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    zero = sum((p.grad == 0).sum().item() for p in model.parameters())
    optimizer.step()
    rows.append([step, repr(loss.item()), repr(norm.item()), zero])
    if step % 50 == 0 or step == 299:
        print(f"step {step}: loss {loss.item():.4g}, gradient norm {norm.item():.4g}, {zero} gradients are 0")

with open("metrics.csv", "w", newline="") as file:
    csv.writer(file).writerows([["step", "loss", "grad_norm", "zero_gradients"], *rows])
torch.save(model.state_dict(), "model.pt")
'''


class NoClassic(SawbonesError):
    """A name that none of the five has, or a run that does not do what it should."""


@dataclass(frozen=True)
class Classic:
    name: str
    fault: str  # an id of `sawbones faults`
    healthy: str  # the script without the fault
    changes: tuple[tuple[str, str], ...]  # healthy text -> broken text
    shows: str  # what a reader will see

    @property
    def broken(self) -> str:
        text = self.healthy
        for old, new in self.changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        return text


CLASSICS = {
    one.name: one
    for one in (
        Classic(
            "permuted-labels",
            "data.labels-misaligned",
            _CLOUDS,
            (
                (
                    "+ torch.randn(800, 8)\n",
                    "+ torch.randn(800, 8)\nlabels = labels[torch.randperm(len(labels))]\n",
                ),
            ),
            "The loss stays near log 4 = 1.386, the loss of a guess, while gradients are small and finite.",
        ),
        Classic(
            "learning-rate-too-high",
            "optimizer.lr-too-high",
            _CLOUDS,
            (("lr=0.1)", "lr=30.0)"),),
            "The loss jumps far above log 4 = 1.386 within the first steps, and is NaN soon after.",
        ),
        Classic(
            "no-zero-grad",
            "loop.no-zero-grad",
            _CLOUDS,
            (("        optimizer.zero_grad()\n", ""),),
            "The gradient norm is that of a sum over all steps so far: about 20 at the end, where a run that clears them has 0.1.",
        ),
        Classic(
            "summed-loss",
            "loss.reduction-sum",
            _CLOUDS,
            (
                ("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")'),
                (
                    "nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))",
                    "nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 4))",
                ),
            ),
            "The first loss is 32 times log 4, gradients are 32 times as large as a mean's, and the tiny model is thrown about.",
        ),
        Classic(
            "half-precision-without-scaling",
            "loop.amp-no-scaler",
            _DISPLACEMENTS.replace(
                '    with torch.autocast("cpu", dtype=torch.float16):\n    ', ""
            ).replace("        answer", "    answer"),
            (
                (
                    "    answer = model(inputs)\n",
                    '    with torch.autocast("cpu", dtype=torch.float16):\n'
                    "        answer = model(inputs)\n",
                ),
            ),
            "Gradients of the hidden layer are below what float16 can hold: they are exactly 0, and the loss "
            "stops where float32 goes on.",
        ),
    )
}


def classic(name: str) -> Classic:
    if name not in CLASSICS:
        raise NoClassic(f"no classic {name!r}. There are: {', '.join(CLASSICS)}")
    return CLASSICS[name]


def write(one: Classic, folder: Path) -> Iterator[str]:
    """Writes, runs and packs it; what was done, line by line."""
    write_folder(
        folder,
        {
            "train.py": one.broken.encode(),
            "README.md": _readme(one).encode(),
            "requirements.txt": requirements({"torch": None, "numpy": None}),
        },
    )
    yield run_alone(folder).rstrip()
    with tempfile.TemporaryDirectory(prefix="classic-") as scratch:
        (Path(scratch) / "train.py").write_text(one.broken, encoding="utf-8")
        run_alone(Path(scratch))
        for name in RESULTS:
            if (folder / name).read_bytes() != (Path(scratch) / name).read_bytes():
                raise NoClassic(f"{name} of a second run differs: this machine does not repeat it")
    yield "a second run gave the same metrics and checkpoint, byte by byte"
    seal(folder)
    packed = tarball(folder, folder.with_name(f"{folder.name}.tar.gz"))
    yield f"wrote {folder} and {packed}; every file is in {SUMS}"


def run_alone(folder: Path) -> str:
    """As anyone would who has no Sawbones: `python train.py` in the folder."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-B", "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=alone,
        timeout=LONGEST,
    )
    if done.returncode:
        raise NoClassic(f"train.py in {folder} ended with {done.stderr.strip()[-300:]}")
    return done.stdout


def _readme(one: Classic) -> str:
    return f"""# {one.name}

    pip install -r requirements.txt
    python train.py

A training run that is broken on purpose. {one.shows}

It takes seconds on a CPU, needs nothing but torch, and repeats bit for bit: `metrics.csv` (one row per
step) and `model.pt` (the weights at the end) come out the same with the same versions on the same kind
of machine. `sha256sum --check SHA256SUMS` compares every file with what it was when this was packed.

The question: what is wrong, on which line, and how do you know? With Sawbones: `sawbones diagnose train.py`.
"""
