"""sawbones try: one thing changed, the script again, and what the difference means."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.trials import names
from sawbones.trials.menu import ITEMS, NoSuchTrial, parse

SLOW = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
net = nn.Linear(8, 2)
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
for _ in range(2):
    for i in range(0, 256, 16):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[i:i+16]), y[i:i+16]).backward()
        opt.step()
"""


def _try(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sawbones", "try", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=cwd)


def test_a_larger_learning_rate_is_seen_to_help_and_clipping_is_not(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    done = _try("--json", "r.json", "lr=1000,clip=1", "slow.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    rows = json.loads((tmp_path / "r.json").read_text())["trials"]
    assert [row["outcome"] for row in rows] == ["confirmed", "refuted"]
    assert rows[0]["with_change"] < rows[0]["baseline"]
    assert "The size of the steps matters" in done.stdout
    assert "as it is  " in done.stdout and "changed   " in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "slow.py"]


def test_the_list_names_every_trial(tmp_path: Path) -> None:
    done = _try("--list", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split()[0].split("=")[0] for line in done.stdout.splitlines()] == [
        item.name for item in ITEMS
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        ("overfit", "no trial 'overfit'. Nearest: overfit-one-batch"),
        ("lr=fast", "lr=fast: a number above 0 is needed"),
        ("lr=nan", "lr=nan: a number above 0 is needed"),
        ("padding=3", "padding takes no value"),
        ("", "no trial ''"),
    ],
)
def test_a_wrong_name_or_value_is_said_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(NoSuchTrial, match=said):
        parse(text)


def test_every_trial_is_reachable_from_a_fault_or_the_menu() -> None:
    """What neither a check nor a person can ask for is dead code."""
    from sawbones import faults

    (rooms,) = faults.__path__
    asking = [Path(parse.__code__.co_filename), *Path(rooms).glob("*/*/check.py")]
    text = "".join(file.read_text() for file in asking)
    assert [name for name in names() if f'"{name}"' not in text] == []


def test_a_script_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    done = _try("lr=0.1", "nowhere.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "no script nowhere.py" in done.stderr
