"""Five classic broken runs: one command each, the same bytes each time, and a tarball that runs alone."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.practise.classics import CLASSICS, Classic, run_alone
from sawbones.schema import fault

ASIDE = "import sys; sys.modules['sawbones'] = None; sys.argv = ['train.py']; "


def _column(folder: Path, name: str) -> list[float]:
    with (folder / "metrics.csv").open(newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


def _ill(one: Classic, folder: Path) -> bool:
    losses, norms = _column(folder, "loss"), _column(folder, "grad_norm")
    late = sum(losses[-25:]) / 25
    return {
        "permuted-labels": lambda: late > 1.2,
        "learning-rate-too-high": lambda: max(losses[:5]) > 10 and not math.isfinite(losses[-1]),
        "no-zero-grad": lambda: norms[-1] > 5,
        "summed-loss": lambda: losses[0] > 30 and late > 10,
        "half-precision-without-scaling": lambda: _column(folder, "zero_gradients")[-1] > 200,
    }[one.name]()


def test_there_are_five_and_each_names_a_fault() -> None:
    assert len(CLASSICS) == 5
    assert all(fault(one.fault) for one in CLASSICS.values())


@pytest.mark.long
@pytest.mark.parametrize("one", CLASSICS.values(), ids=lambda one: one.name)
def test_the_broken_one_is_ill_and_the_healthy_one_is_not(one: Classic, tmp_path: Path) -> None:
    for name, text in (("broken", one.broken), ("healthy", one.healthy)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text, encoding="utf-8")
        run_alone(tmp_path / name)
    assert _ill(one, tmp_path / "broken") and not _ill(one, tmp_path / "healthy")


def test_a_classic_is_one_command_and_its_tarball_runs_without_sawbones(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["practise", "classic", "permuted-labels"])
    said = capsys.readouterr().out
    assert end.value.code == 0 and "byte by byte" in said
    with tarfile.open("classic-permuted-labels.tar.gz") as packed:
        packed.extractall("elsewhere", filter="data")
    folder = tmp_path / "elsewhere" / "classic-permuted-labels"
    assert {path.name for path in folder.iterdir()} == {
        *("train.py", "README.md", "requirements.txt", "metrics.csv", "model.pt", "SHA256SUMS")
    }
    assert "sawbones" not in (folder / "train.py").read_text().lower()
    for name in ("metrics.csv", "model.pt"):
        (folder / name).unlink()
    aside = ASIDE + "import runpy; runpy.run_path('train.py', run_name='__main__')"
    subprocess.run([sys.executable, "-c", aside], cwd=folder, check=True, capture_output=True)
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
