"""The generated reference is what the code says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sawbones.schema import faults

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


def test_the_python_names_are_up_to_date_and_each_says_what_it_does() -> None:
    command = [sys.executable, str(DOCS / "generate_api.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    import sawbones.testing

    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for module in (sawbones, sawbones.testing):
        assert all(f"### `{module.__name__}.{name}`" in page for name in module.__all__)


def test_how_often_a_check_was_right_is_counted_from_the_results(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import first_tries

    table = """
| program | truth | right | first try | second try | twin | SHA-256 |
|---|---|---|---|---|---|---|
| one | text | loss.wrong-sign | loss.wrong-sign, proven, a.py:3 | - | healthy | 1 |
| two | text | loss.wrong-sign | healthy | loss.wrong-sign, proven, b.py:3 | healthy | 2 |
| three | text | loop.no-step, loop.no-zero-grad | loss.wrong-sign, likely, c.py:9 | - | healthy | 3 |
| four | text | loop.no-step | loop.no-step, suspected, d.py:9 (healthy) | - | loss.wrong-sign, likely, d.py:1 | 4 |
"""
    found: dict[str, first_tries.Tries] = {}
    for row in first_tries.tables(table):
        first_tries._count_other(row, found)
    sign = found["loss.wrong-sign"]
    assert (sign.right, sign.named, sign.found, sign.asked) == (1, 3, 1, 2)
    assert (found["loop.no-step"].named, found["loop.no-step"].asked) == (0, 1)
    assert set(first_tries.first_tries()) <= set(faults())
