"""A postmortem within 500 words from what was measured, and a package that reruns on its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.report.postmortem import MOST_WORDS, postmortem
from sawbones.schema import Ending, Evidence, Finding, Report, Run

SCRIPT = """\
import torch
from sizes import WIDTH

torch.manual_seed(3)
x = torch.randn(64, WIDTH)
y = torch.load("labels.pt")
model = torch.nn.Linear(WIDTH, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    (-loss).backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
PARTS = ("Symptom", "Timeline", "Reproduction", "Evidence", "Cause", "Fix", "Prevention")


def _main(capsys, *args: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    assert end.value.code == 0
    return str(capsys.readouterr().out)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ill")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "sizes.py").write_text("WIDTH = 5\n")
    make = "import torch; torch.save(torch.arange(64) % 2, 'labels.pt')"
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    call = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "rec", "train.py"]
    subprocess.run(call, cwd=folder, check=True, capture_output=True)
    return folder


def test_a_postmortem_has_its_parts_from_what_was_measured(recorded, monkeypatch, capsys) -> None:
    monkeypatch.chdir(recorded)
    said = _main(capsys, "report", "rec", "--markdown")
    assert all(f"## {part}\n" in said for part in (*PARTS, "Open questions"))
    assert "loss.wrong-sign" in said and "train.py:12" in said and "torch.manual_seed(3)" in said
    assert len(said.split()) <= MOST_WORDS
    _main(capsys, "report", "rec", "--markdown", "post.md")
    assert (recorded / "post.md").read_text().strip() == said.strip()


def test_a_package_reruns_without_sawbones_to_the_same_numbers(
    recorded, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(recorded)
    said = _main(capsys, "report", "rec", "--package", "given", "--show-data")
    assert "ran it twice without Sawbones: the same 30 values" in said
    folder = recorded / "given"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("train.py", "sizes.py", "labels.pt", "rerun.py", "rerun.json", "expected.csv"),
        *("metrics.csv", "requirements.txt", "environment.json", "POSTMORTEM.md", "README.md"),
        "SHA256SUMS",
    }
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    (folder / "sizes.py").write_text("WIDTH = 6\n")
    done = subprocess.run(
        [sys.executable, "rerun.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "expected" in done.stdout


def test_data_stays_at_home_unless_it_is_asked_for(recorded, monkeypatch, capsys) -> None:
    monkeypatch.chdir(recorded)
    said = _main(capsys, "report", "rec", "--package", "bare")
    assert "left out 1 data files" in said
    assert not (recorded / "bare" / "labels.pt").exists()
    assert "labels.pt" in (recorded / "bare" / "README.md").read_text()


def test_many_findings_still_fit_into_five_hundred_words() -> None:
    words = "a long text about what was seen here and there " * 5
    findings = tuple(
        Finding("loss.wrong-sign", "likely", 0.9, words, (), (Evidence(words),) * 9)
        for _ in range(9)
    )
    report = Report("sick", "train.py", 0, 0.0, findings, notes=(words,) * 9)
    text = postmortem(report, Run("train.py", (), "", {}, Ending("finished")))
    assert len(text.split()) <= MOST_WORDS and text.startswith("# Postmortem: train.py")
