"""Capture holds no second copy of a model: not while it trains, and not while a bundle of it is
written.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.conftest import record

from sawbones.capture.bundle import read_bundle

WEIGHTS_MB = 6 * 2048 * 2049 * 4 / 2**20

LARGE = """
import torch
from torch import nn

model = nn.Sequential(*[nn.utils.skip_init(nn.Linear, 2048, 2048) for _ in range(6)])
for p in model.parameters():
    p.data.fill_(1e-4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(3):
    loss = model(torch.ones(2, 2048)).square().mean() * (float("nan") if step == 1 else 1.0)
    optimizer.zero_grad()
    with open("/proc/self/clear_refs", "w") as peak:  # forgets the peak so far: measuring a step takes more than a backward pass
        peak.write("5")
    loss.backward()
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
    optimizer.step()
"""


def peak_mb(folder: Path, *flags: str) -> float:
    """Of the backward pass that fails, at the end of which the bundle is written."""
    folder.mkdir()
    return int(record(folder, LARGE, "--no-deep", *flags).output.split()[1]) / 1024


@pytest.mark.timeout(300)
def test_capture_adds_less_than_half_of_the_weights_even_when_it_writes_them(
    tmp_path: Path,
) -> None:
    without = peak_mb(tmp_path / "without", "--no-capture")
    captured = peak_mb(tmp_path / "captured")
    (path,) = (tmp_path / "captured" / "run" / "bundles").glob("*.sawbones")
    assert sum(t.numel() for t in read_bundle(path).weights().values()) == 6 * 2048 * 2049
    assert captured - without < WEIGHTS_MB / 2
