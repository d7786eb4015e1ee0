"""One short recording of a script that never clears its gradients, shared by these tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

SCRIPT = """import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
for step in range(40):
    rows = torch.arange(32) + 32 * (step % 8)
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.py and the recording `run` of it."""
    import sawbones

    folder = tmp_path_factory.mktemp("project")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    was, argv = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["train.py"]
    try:
        with sawbones.watch(out=folder / "run"):
            exec(compile(SCRIPT, str(script), "exec"), {"__name__": "training"})
    finally:
        os.chdir(was)
        sys.argv = argv
    return folder
