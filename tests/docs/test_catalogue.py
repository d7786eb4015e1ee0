"""The generated reference is what the code says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(DOCS / "generate_catalogue.py"),
        "--check",
        "--folder",
        str(folder),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_catalogue_and_command_pages_are_up_to_date() -> None:
    done = _check(DOCS / "reference")
    assert done.returncode == 0, done.stderr


def test_an_edited_a_missing_and_a_leftover_page_are_seen(tmp_path: Path) -> None:
    shutil.copytree(DOCS / "reference", tmp_path / "reference")
    folder = tmp_path / "reference"
    (folder / "cli.md").write_text("edited", encoding="utf-8")
    (folder / "catalogue" / "README.md").unlink()
    (folder / "catalogue" / "loss.no-such-fault.md").write_text("left over", encoding="utf-8")
    done = _check(folder)
    assert done.returncode == 1
    assert all(
        name in done.stderr
        for name in ("cli.md", "catalogue/README.md", "catalogue/loss.no-such-fault.md")
    )
