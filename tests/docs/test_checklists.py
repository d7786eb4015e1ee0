"""Every command of the checklists exists: its name, its flags, its trial, its fault."""

from __future__ import annotations

import re
import shlex
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


def test_every_page_is_listed_and_fits_on_a_sheet() -> None:
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    pages = [page for page in PAGES.glob("*.md") if page.name != "README.md"]
    assert len(pages) == 12
    for page in pages:
        assert f"({page.name})" in listed
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60
