"""Tutorial and how-to pages, run by an environment that holds the core dependencies alone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import walk_through  # noqa: E402  # a script beside the pages

PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
NEEDS_MORE = {"audit": "needs the extra audit", "trainers": "needs the frameworks"}


def test_every_command_of_the_pages_is_run_or_says_why_not() -> None:
    found = [(page.stem, step) for page in PAGES for step in walk_through.steps_of(page)]
    run = [step for _, step in found if not step.why_left_out]
    assert len(run) > 35 and len(found) - len(run) < 30
    assert {name for name, _ in found} > {"capture", "fix", "page", "pin", "profile", "try"}


def test_what_sawbones_prints_is_no_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    sawbones run train.py   # go\n    sawbones: train.py 3 steps\n")
    assert [(s.line, s.command) for s in walk_through.steps_of(page)] == [
        (1, "sawbones run train.py")
    ]


def test_a_page_with_a_wrong_flag_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(walk_through, "BEFORE", ())
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    page = tmp_path / "page.md"
    page.write_text("    sawbones explain model.causal-leak\n    sawbones runs --wrong\n")
    (wrong,) = walk_through.walk(page)
    assert wrong.startswith("page.md:2: sawbones runs --wrong")
    assert "ok     page.md:1" in capsys.readouterr().out


@pytest.fixture(scope="session")
def core_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Sawbones and its core dependencies, as links."""
    folder = tmp_path_factory.mktemp("core")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    subprocess.run([sys.executable, str(ROOT / ".ci/core_packages.py"), str(site)], check=True)
    (site / "sawbones").symlink_to(ROOT / "src" / "sawbones")
    command = folder / "bin" / "sawbones"
    command.write_text(f"#!{folder}/bin/python\nfrom sawbones.__main__ import main\nmain()\n")
    command.chmod(0o755)
    assert sysconfig.get_path("purelib") != str(site)
    return folder


@pytest.mark.skipif(
    not os.environ.get("SAWBONES_PAGES"), reason="every command of the how-to pages: minutes each"
)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_runs_as_it_stands(page: Path, core_only: Path) -> None:
    if page.stem in NEEDS_MORE:
        pytest.skip(NEEDS_MORE[page.stem])
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/walk_through.py"), f"how-to/{page.name}"],
        env={**os.environ, "PATH": f"{core_only}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
