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


ROOTS = """\
import torch

torch.manual_seed(0)
table = torch.load("table.pt")
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    part = table[(step * 8) % 64 :][:8]
    loss = torch.log(part[:, :6].abs().sum(1) + model(part[:, :6])[:, 0].abs() * 0).mean()
    loss = loss + model(part[:, :6]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_the_step_that_went_ill_travels_in_small_and_fails_with_torch_alone(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(ROOTS)
    make = (
        "import torch; torch.manual_seed(1); t = torch.randn(64, 7); t[43, :6] = 0; "
        "torch.save(t, 'table.pt')"
    )
    subprocess.run([sys.executable, "-c", make], check=True)
    call = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "rec", "train.py"]
    subprocess.run(call, capture_output=True)
    said = _main(capsys, "report", "rec", "--package", "given", "--show-data")
    assert "ran captured/reproduce.py without Sawbones" in said
    folder = tmp_path / "given"
    readme = (folder / "README.md").read_text()
    assert "The captured step: step 5: " in readme and "python captured/reproduce.py" in readme
    alone = (folder / "captured" / "reproduce.py").read_text()
    assert "sawbones" not in alone.replace("Sawbones", "").split("import torch")[1]
    bare = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "captured/reproduce.py"],
        cwd=folder,
        env=bare,
        capture_output=True,
        text=True,
    )
    assert "inf" in done.stdout + done.stderr or "nan" in done.stdout + done.stderr
    again = subprocess.run(
        [sys.executable, "rerun.py"], cwd=folder, env=bare, capture_output=True, text=True
    )
    assert again.returncode == 0 and "not finite from step 5 on" in again.stdout
    assert not list(folder.rglob("*.tmp"))
    _main(capsys, "report", "rec", "--package", "bare")
    assert not (tmp_path / "bare" / "captured").exists()  # its values are data


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
