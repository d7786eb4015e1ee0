"""A postmortem within 500 words from what was measured, and a package that reruns on its own."""

from __future__ import annotations

import json
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


def _rerun(folder: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "rerun.py"]
    bare = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, env=bare, check=False)


def test_data_stays_at_home_and_the_readme_says_what_it_does_not_run_without(
    recorded, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(recorded)
    said = _main(capsys, "report", "rec", "--package", "bare")
    assert "left out 1 data files" in said
    assert "twice without Sawbones with the data files beside it: the same 30 values" in said
    folder = recorded / "bare"
    assert not (folder / "labels.pt").exists()
    readme = (folder / "README.md").read_text()
    assert "**It does not run without these files" in readme and "- `labels.pt`, " in readme
    done = _rerun(folder)
    assert done.returncode == 2 and "needed and not here: labels.pt" in done.stdout
    (folder / "labels.pt").write_bytes((recorded / "labels.pt").read_bytes())
    done = _rerun(folder)
    assert done.returncode == 0 and "the same 30 values" in done.stdout
    assert "recorded as: diverges" in done.stdout


def _packaged(folder: Path, monkeypatch, capsys, script: str, *args: str) -> tuple[str, str]:
    """What was said, and the README."""
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(script)
    call = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "rec", "train.py", *args]
    subprocess.run(call, capture_output=True)
    said = _main(capsys, "report", "rec", "--package", "given")
    return said, (folder / "given" / "README.md").read_text()


OWN_DATA = """\
import sys
import torch
from parts.net import net
from parts import sizes

{seed}
x = torch.randn(64, sizes.WIDTH)
y = torch.arange(64) % 2
model = net(sizes.WIDTH)
optimizer = torch.optim.SGD(model.parameters(), lr=1e5)
for step in range(40):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x)[:, 0], y.float())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("seed", "outcome"),
    [
        ("torch.manual_seed(3)", "the same 40 values"),
        ("torch.seed()", "other values each time, as where it was recorded"),
    ],
)
def test_a_script_that_makes_its_data_reruns_to_the_symptom_with_its_package_beside_it(
    seed: str, outcome: str, tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "net.py").write_text(
        "import torch\n\n\ndef net(width):\n    return torch.nn.Linear(width, 1)\n"
    )
    (tmp_path / "parts" / "sizes.py").write_text("WIDTH = 5\n")
    said, readme = _packaged(tmp_path, monkeypatch, capsys, OWN_DATA.format(seed=seed))
    assert f"ran it twice without Sawbones: {outcome}" in said
    assert "- to be seen: non-finite" in readme and outcome in readme
    done = _rerun(tmp_path / "given")
    assert done.returncode == 0 and "not finite from step" in done.stdout
    assert outcome in done.stdout


JOINED = """\
import os
import sys
import torch

torch.manual_seed(0)
x = torch.load(os.path.join("data", "rows.pt")) + torch.load(sys.argv[1])
part = "rest"
{more}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    loss = -model(x).mean()
    loss.backward()
    optimizer.step()
"""


def test_files_that_are_named_in_parts_or_in_an_argument_are_found_and_others_are_admitted(
    tmp_path, monkeypatch, capsys
) -> None:
    make = (
        "import torch, os; os.mkdir('data'); "
        "[torch.save(torch.ones(8, 4), f'data/{n}.pt') for n in ('rows', 'rest', 'more')]"
    )
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True)
    said, readme = _packaged(tmp_path, monkeypatch, capsys, JOINED.format(more=""), "data/more.pt")
    assert "the same 30 values" in said
    assert "`data/rows.pt`" in readme and "`data/more.pt`" in readme and "rest" not in readme
    again = tmp_path / "again"
    again.mkdir()
    (tmp_path / "data").rename(again / "data")
    script = JOINED.format(more='x = x + torch.load(f"data/{part}.pt")')
    said, readme = _packaged(again, monkeypatch, capsys, script, "data/more.pt")
    assert "it does NOT rerun: FileNotFoundError" in said
    assert "**it did not rerun where it was made" in readme and "FileNotFoundError" in readme


def test_a_script_that_stands_still_does_so_again_and_says_where(
    tmp_path, monkeypatch, capsys
) -> None:
    from sawbones.handover import rerun

    (tmp_path / "train.py").write_text("import time\ntime.sleep(100)\n")
    settings = {"script": "train.py", "arguments": [], "steps": 1, "seconds": -18, "error": ""}
    settings |= {"hangs": True, "repeats": True, "symptoms": ["hangs: stands still"], "needs": []}
    (tmp_path / "rerun.json").write_text(json.dumps(settings))
    (tmp_path / "rerun.py").write_bytes(Path(rerun.__file__).read_bytes())
    done = _rerun(tmp_path)
    assert done.returncode == 0 and "it stands still: as recorded" in done.stdout
    assert 'train.py", line 2' in done.stderr


def test_many_findings_still_fit_into_five_hundred_words() -> None:
    words = "a long text about what was seen here and there " * 5
    findings = tuple(
        Finding("loss.wrong-sign", "likely", 0.9, words, (), (Evidence(words),) * 9)
        for _ in range(9)
    )
    report = Report("sick", "train.py", 0, 0.0, findings, notes=(words,) * 9)
    text = postmortem(report, Run("train.py", (), "", {}, Ending("finished")))
    assert len(text.split()) <= MOST_WORDS and text.startswith("# Postmortem: train.py")
