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


SAVING = """
import sys, time, torch
from torch import nn
from torch.utils.data import DataLoader
torch.manual_seed(0)
x = torch.randn(64, 4)
loader = DataLoader(list(zip(x, x[:, :1])), batch_size=8)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
when = time.time() if "--stamp" in sys.argv else 0
torch.save({"model": net.state_dict(), "epoch": epoch, "when": when}, "last.pt")
"""


def test_a_smoke_test_holds_to_a_number_and_to_a_hash_that_two_runs_share(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SAVING)
    short = ("--json", "r.json", "--hash", "--expect", "loss < 10", "--expect", "lr == 0.1")
    done = _try(*short, "short=2", "train.py", cwd=tmp_path)
    rows = json.loads((tmp_path / "r.json").read_text())["trials"][1:]
    assert [row["outcome"] for row in rows] == ["refuted"] * 3, done.stdout
    assert "last.pt of step 6, the same in two runs" in rows[2]["result"]
    assert not (tmp_path / "last.pt").exists()


def test_a_hash_that_cannot_be_taken_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SAVING.partition("when = ")[0])
    done = _try("--hash", "--expect", "loss < 10", "short=2", "train.py", cwd=tmp_path)
    assert "expect loss < 10: holds" in done.stdout
    assert "hash: undecided\n  no checkpoint was saved" in done.stdout
    assert done.returncode == 4


@pytest.mark.long
def test_a_number_that_is_missed_and_a_checkpoint_that_differs_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SAVING)
    done = _try("--hash", "--expect", "loss < 0", "short=2", "train.py", "--stamp", cwd=tmp_path)
    assert done.returncode == 1
    assert "expect loss < 0: DOES NOT HOLD" in done.stdout
    assert "when of last.pt of step 6 (1 of 4 parts differ)" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--expect", "loss is low", "short"), "is no comparison"),
        (("--expect", "loss < low", "short"), "'low' is no number"),
        (("--hash", "lr=0.1"), "go with short alone"),
    ],
)
def test_an_expectation_that_cannot_be_asked_is_refused(
    tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    (tmp_path / "train.py").write_text(SAVING)
    done = _try(*args, "train.py", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr
