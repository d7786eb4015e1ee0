"""Every command of the checklists exists: its name, its flags, its trial, its fault."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import COMMANDS
from sawbones.lookup import look_up
from sawbones.trials.menu import parse

PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "checklists"
FLAGS = (PAGES.parents[1] / "reference" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for command in re.findall(r"`sawbones ([^`]+)`", text):
        words = shlex.split(command)
        assert words[0] in COMMANDS
        for flag in (word for word in words if word.startswith("--")):
            assert flag in FLAGS, command
        if words[0] == "explain":
            assert look_up(" ".join(words[1:]))
        if words[0] == "try":
            trials = next(w for w in words[1:] if not w.startswith("--") and not w.isdigit())
            assert parse(trials)
    for linked in re.findall(r"\]\((\S+\.md)\)", text):
        assert (PAGES / linked).is_file()


# What the pages call train.py, train.csv, test.csv and today.csv.
SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 6)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
for epoch in range(3):
    for part in torch.randperm(64).split(8):
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    torch.save({"model": model.state_dict(), "epoch": epoch}, "model.pt")
print(loss.item())
"""
SECONDS = 300


def _commands() -> list[str]:
    pages = (page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
    found = [c for text in pages for c in re.findall(r"`sawbones ([^`]+)`", text)]
    return [
        c for c in dict.fromkeys(found) if not {"FAULT", "BUNDLE", "RUN", "PATH"} & set(c.split())
    ]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "train.py").write_text(SCRIPT)
    for number, name in enumerate(("train", "test", "today")):
        days = (f"2026-{number + 1:02d}-{day % 28 + 1:02d}" for day in range(40))
        rows = [f"{number * 100 + i},{day},{(i * 37) % 11},{i % 2}" for i, day in enumerate(days)]
        (folder / f"{name}.csv").write_text("\n".join(["user,date,amount,target", *rows]) + "\n")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(c, marks=() if c.startswith("audit") else pytest.mark.long)
        for c in _commands()
        if not c.startswith("explain")  # looked up above
    ],
)
def test_the_command_of_a_page_runs(command: str, desk: Path) -> None:
    """To an answer of its own: neither a usage error nor a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", *shlex.split(command)],
        cwd=desk,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode in (0, 1, 4), done.stderr
    assert "Traceback" not in done.stderr and done.stdout.strip()


def test_every_page_is_listed_and_fits_on_a_sheet() -> None:
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    pages = [page for page in PAGES.glob("*.md") if page.name != "README.md"]
    assert len(pages) == 12
    for page in pages:
        assert f"({page.name})" in listed
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60
