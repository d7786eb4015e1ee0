"""CONTRIBUTING.md adds a fault; here its files are taken from the page and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULT = "model.dropout-all"


def _blocks() -> dict[str, str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"```(?:python|toml)\n# (src/\S+)\n(.*?)```", text, flags=re.DOTALL)
    return dict(found)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the files of the page added, as a contributor would."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in _blocks().items():
        file = copy / name
        file.parent.mkdir(parents=True, exist_ok=True)
        was = file.read_text(encoding="utf-8") + "\n" if file.exists() else ""
        file.write_text(was + text, encoding="utf-8")
    (copy / "src/sawbones/faults/model/dropout_all/__init__.py").touch()
    return copy


def _python(checkout: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *args],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_the_page_has_every_file_and_the_fault_is_found_by_its_place(checkout: Path) -> None:
    assert FAULT.replace(".", "/").replace("-", "_") in " ".join(_blocks())
    done = _python(checkout, "-m", "sawbones", "explain", FAULT)
    assert done.returncode == 0, done.stderr
    assert "## What it sees" in done.stdout


@pytest.mark.skipif(not os.environ.get("SAWBONES_FULL"), reason="runs with SAWBONES_FULL=1")
@pytest.mark.parametrize(("flag", "expected"), [((), 1), (("--healthy",), 0)])
def test_the_check_fires_on_its_patient_at_its_line_and_not_on_the_twin(
    checkout: Path, flag: tuple[str, ...], expected: int
) -> None:
    script = checkout / "src/sawbones/faults/model/dropout_all/lab.py"
    out = f"recorded-{expected}"
    call = ("-m", "sawbones", "run", "--quiet", "--out", out, str(script), *flag)
    assert _python(checkout, *call).returncode == 0
    done = _python(checkout, "-m", "sawbones", "diagnose", "--only", FAULT, "--quiet", out)
    asking = [
        n for n, line in enumerate(script.read_text().splitlines(), 1) if "patient.broken" in line
    ]
    found = re.findall(rf"lab\.py:(\d+): {re.escape(FAULT)}", done.stdout)
    assert [int(line) for line in found] == asking[:expected], done.stdout + done.stderr
