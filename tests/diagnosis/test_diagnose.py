"""sawbones diagnose as a user calls it: real processes, real reports, validated against the
schema.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from sawbones.report.json_report import report_schema
from sawbones.schema.errors import SawbonesError
from sawbones.store import read_run

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"


def diagnose(folder: Path, *args: str, script: Path | str) -> tuple[int, dict, str]:
    out = folder / "report.json"
    command = [sys.executable, "-m", "sawbones", "diagnose", "--json", str(out), *args, str(script)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    report = json.loads(out.read_text()) if out.exists() else {}
    if report:
        jsonschema.validate(report, report_schema())
    return done.returncode, report, done.stdout + done.stderr


def test_a_sick_script_gives_one_proven_finding_with_place_experiment_fix_and_test(tmp_path):
    source = CORPUS / "faults/loop.no-zero-grad/plain-spirals/broken.py"
    (tmp_path / "train.py").write_text(source.read_text())
    status, report, text = diagnose(tmp_path, script="train.py")
    assert status == 1, text
    assert report["verdict"] == "sick"
    (finding,) = [f for f in report["findings"] if f["status"] != "suspected"]
    assert (finding["fault"], finding["status"]) == ("loop.no-zero-grad", "proven")
    assert finding["where"][0]["file"] == "train.py"
    assert "backward" in finding["where"][0]["code"]
    assert finding["experiment"]["with_remedy"] < finding["experiment"]["baseline"]
    assert "zero_grad" in finding["fix"]["patch"]
    compile(finding["test"], "test", "exec")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.json", "train.py"]


def test_a_healthy_script_is_called_healthy_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "train.py").write_text((CORPUS / "healthy/tied_weight_lm.py").read_text())
    status, report, text = diagnose(tmp_path, script="train.py")
    assert status == 0, text
    assert report["verdict"] == "healthy"
    assert report["findings"] == []
    assert report["could_not_look"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.json", "train.py"]


def test_the_example_of_the_readme_is_diagnosed_at_its_line(tmp_path):
    source = (ROOT / "examples/translate.py").read_text()
    (tmp_path / "translate.py").write_text(source)
    lines = source.splitlines()
    unmasked = next(n for n, line in enumerate(lines, 1) if "= self.transformer(" in line)
    status, report, text = diagnose(tmp_path, script="translate.py")
    assert status == 1, text
    assert report["findings"][0]["fault"] == "model.causal-leak"
    assert report["findings"][0]["where"][0]["line"] == unmasked
    assert f"examples/translate.py:{unmasked} in forward" in (ROOT / "README.md").read_text()


def test_a_crash_is_reported_with_status_3_and_where_it_happened(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nm = torch.nn.Linear(4, 2)\nfor i in range(3):\n    "
        "m(torch.randn(2, 4 + i)).sum().backward()\n"
    )
    status, report, text = diagnose(tmp_path, "--no-experiments", script="train.py")
    assert status == 3, text
    assert report["verdict"] == "crashed"
    assert "train.py:4" in text


@pytest.mark.parametrize(
    ("args", "script", "says"),
    [
        ((), "nowhere.py", "no script nowhere.py"),
        (("--only", "model.causal-leek"), "train.py", "model.causal-leak"),
        (("--seconds", "0"), "train.py", "'0': a number above 0"),
    ],
)
def test_usage_errors_are_one_line_with_the_value_and_status_2(tmp_path, args, script, says):
    (tmp_path / "train.py").write_text("import torch\n")
    status, _, text = diagnose(tmp_path, *args, script=script)
    assert status == 2
    assert says in text
    assert len(text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("print('nothing to do')\n", "without importing torch"),
        ("import torch\ntorch.nn.Linear(2, 1)(torch.ones(1, 2))\n", "no optimizer step was seen"),
        ("import time\ntime.sleep(60)\nimport torch\n", "the time was up"),
    ],
)
def test_too_little_to_judge_is_inconclusive_with_status_4(tmp_path, source, why):
    (tmp_path / "train.py").write_text(source)
    flags = ("--no-experiments", "--seconds", "8" if "sleep" in source else "100")
    status, report, text = diagnose(tmp_path, *flags, script="train.py")
    assert (status, report["verdict"]) == (4, "inconclusive"), text
    assert why in " ".join(report["notes"]) and why in " ".join(text.split())


def test_a_script_that_is_killed_under_the_diagnosis_has_crashed(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, signal, torch\nm = torch.nn.Linear(2, 1)\n"
        "o = torch.optim.SGD(m.parameters(), 0.1)\nfor i in range(40):\n    o.zero_grad()\n"
        "    m(torch.ones(4, 2)).square().mean().backward()\n    o.step()\n"
        "import time\ntime.sleep(2)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    status, report, text = diagnose(tmp_path, "--no-experiments", script="train.py")
    assert (status, report["verdict"]) == (3, "crashed"), text
    assert "killed" in " ".join(report["notes"])


def test_a_recorded_run_is_diagnosed_without_the_script_and_says_what_stays_open(tmp_path):
    source = CORPUS / "faults/loop.no-zero-grad/plain-spirals/broken.py"
    (tmp_path / "train.py").write_text(source.read_text())
    recorded = subprocess.run(
        [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "kept", "train.py"],
        cwd=tmp_path,
    )
    assert recorded.returncode == 0
    status, report, text = diagnose(tmp_path, script="kept")
    assert status == 1, text
    assert report["findings"][0]["fault"] == "loop.no-zero-grad"
    assert report["findings"][0]["status"] == "likely"
    assert "zero_grad_added" in text


def _num_steps(folder: Path) -> int:
    try:
        return read_run(folder).num_steps
    except SawbonesError:
        return 0


def test_ctrl_c_gives_the_diagnosis_so_far_and_ends_every_child(tmp_path):
    (tmp_path / "train.py").write_text(
        "import time, torch\nfrom torch import nn\ntorch.manual_seed(0)\nm = nn.Linear(4, 2)\n"
        "o = torch.optim.SGD(m.parameters(), 0.1)\nwhile True:\n    o.zero_grad()\n    x = torch.randn(8, 4)\n"
        "    nn.functional.cross_entropy(m(x), (x.sum(1) > 0).long()).backward()\n    o.step()\n    time.sleep(0.02)\n"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "sawbones",
            "diagnose",
            "--json",
            "report.json",
            "--keep-run",
            "kept",
            "train.py",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    while not _num_steps(tmp_path / "kept") > 5:
        assert process.poll() is None
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["steps"] > 5
    assert (report["verdict"], process.returncode) == ("inconclusive", 4)
    left = subprocess.run(
        ["pgrep", "-f", f"sawbones.trials.child.*{os.getpid()}"],
        capture_output=True,
        text=True,
    ).stdout
    assert not left.strip()
