"""sawbones profile on a script whose slow line and large tensor are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main

SCRIPT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.out = nn.Linear(32, 50)

    def forward(self, ids):
        h = self.table(ids)
        for _ in range(6):
            h = torch.tanh(h @ WIDE @ NARROW)
        return self.out(h)


torch.manual_seed(0)
WIDE, NARROW = torch.randn(32, 8192) / 50, torch.randn(8192, 32) / 50
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = torch.utils.data.DataLoader(torch.randint(50, (640, 11)), batch_size=8)
for epoch in range(5):
    for rows in data:
        scores = net(rows[:, :-1])
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), rows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str]:
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sawbones",
        "profile",
        "--steps",
        "24",
        "--top",
        "3",
        "--json",
        "profile.json",
        "train.py",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "profile.json").read_text()), done.stdout


def test_time_is_split_and_counted(profiled: tuple[dict, str]) -> None:
    profile, _ = profiled
    assert profile["steps"] == 24
    assert set(profile["split_ms"]) == {"data", "forward", "backward", "optimizer", "other"}
    assert all(
        profile["split_ms"][part] > 0 for part in ("data", "forward", "backward", "optimizer")
    )
    assert profile["split_ms"]["forward"] > profile["split_ms"]["optimizer"]
    assert profile["tokens_per_second"] == pytest.approx(10 * profile["samples_per_second"])


def test_operators_and_memory_lead_to_the_users_line(profiled: tuple[dict, str]) -> None:
    profile, shown = profiled
    slow = SCRIPT.splitlines().index("            h = torch.tanh(h @ WIDE @ NARROW)") + 1
    assert profile["operators"][0]["site"]["line"] == slow
    assert profile["operators"][0]["site"]["file"] == "train.py"
    assert profile["memory"]["owners"][0]["site"]["line"] == slow
    assert profile["memory"]["parameters_mb"] == pytest.approx((50 * 32 * 2 + 50) * 4 / 2**20)
    assert profile["memory"]["optimizer_mb"] > 1.9 * profile["memory"]["parameters_mb"]
    assert f"train.py:{slow}" in shown and "One step" in shown


def test_the_backward_of_an_operator_is_its_own_lines(profiled: tuple[dict, str]) -> None:
    profile, _ = profiled
    looked_up = SCRIPT.splitlines().index("        h = self.table(ids)") + 1
    assert any(
        "embedding_dense_backward" in row["name"] and row["site"]["line"] == looked_up
        for row in profile["operators"]
    )


def test_too_few_steps_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["profile", "--steps", "3", "train.py"])
    assert "at least 12" in capsys.readouterr().err
