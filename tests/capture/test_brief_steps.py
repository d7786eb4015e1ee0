"""Failures in the middle of brief steps are captured as those of ordinary ones are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.capture.conftest import Recorded, environment, record

from sawbones.capture.bundle import read_bundle
from sawbones.capture.replay import replay
from sawbones.store import read_run

FAILS_AT = 130  # neither kept in full nor a look at the batch

LOADER = """
import random
import sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

fault = sys.argv[1]
torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(400, 6), torch.randint(0, 3, (400,))), batch_size=4, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
step = 0
for epoch in range(2):
    for x, y in data:
        x = x + random.random() * 0.1 + float(np.random.rand()) * 0.1
        scale = 1.0 if step != FAILS_AT else {"loss": float("inf"), "spike": 500.0}.get(fault, 1.0)
        optimizer.zero_grad()
        scores = model(x)
        if step == FAILS_AT and fault == "exception":
            y = y + 2
        loss = nn.functional.cross_entropy(scores, y) * scale
        if step == FAILS_AT and fault == "gradient":
            loss = loss + (model[0].weight[0, 0] * 0).sqrt()
        if step == FAILS_AT and fault == "loss":
            loss = loss - loss
        loss.backward()
        optimizer.step()
        step += 1
""".replace("FAILS_AT", str(FAILS_AT))

KINDS = {
    "loss": "nonfinite loss",
    "gradient": "nonfinite gradient",
    "spike": "loss spike",
    "exception": "exception",
}


def in_brief(run: Recorded) -> set[int]:
    """Steps of which there is a row, but none of the common events."""
    recorded = read_run(run.folder / "run")
    kept = {event.step for event in recorded.of_kind("backward")}
    return {int(step) for step in recorded.steps["step"]} - kept


@pytest.mark.parametrize("fault", KINDS)
def test_a_failure_after_a_hundred_brief_steps_replays_bit_for_bit(
    tmp_path: Path, fault: str
) -> None:
    run = record(tmp_path, LOADER, argv=(fault,))
    assert set(range(FAILS_AT - 4, FAILS_AT)) <= in_brief(run)
    bundle = read_bundle(run.bundles[0])
    assert (bundle.failure.kind, bundle.step) == (KINDS[fault], FAILS_AT)
    (arrival,) = bundle.batches()
    assert arrival["scalars"]["step"] == FAILS_AT and arrival["scalars"]["epoch"] == 1
    found = replay(bundle)
    assert (found.same, found.way, found.differences) == (True, "jump", [])


BY_HAND = """
import torch
import sawbones
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.3), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = DataLoader(TensorDataset(torch.randn(800, 6), torch.randn(800, 3)), batch_size=4, shuffle=True)
with sawbones.watch(out="run") as w:
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        if step == 130:
            w.capture()
        loss.backward()
        if step == 133:
            w.capture()
        optimizer.step()
"""


def test_brief_steps_are_captured_by_hand_before_and_after_their_backward_pass(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(BY_HAND)
    subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=100,
        env=environment(),
    )
    run = Recorded(tmp_path, "", "")
    assert {128, 129, 132} <= in_brief(run)
    assert [read_bundle(path).step for path in run.bundles] == [130, 133]
    assert all(replay(read_bundle(path)).same for path in run.bundles)
