"""sawbones pin: from a run folder, or a report, to tests that fail until the code is mended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main

BROKEN = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(16, 4)
    y = x[:, 0].gt(0).long()
    loss = nn.functional.cross_entropy(model(x).softmax(-1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.save(model.state_dict(), "last.pt")
"""
CRASHING = BROKEN.replace(".softmax(-1)", "").replace("    y = ", "    y = 3 * (step == 5) + ")


def _main(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    return int(end.value.code or 0)


def _pytest(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", *args],
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_finding_is_pinned_by_diagnose_and_again_from_its_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = folder / "train.py"
    script.write_text(BROKEN, encoding="utf-8")
    flags = ("--no-experiments", "--quiet", "--json", "report.json", "--pin", "tests/pinned")
    assert _main("diagnose", *flags, "--only", "loss.double-softmax", "train.py") == 1
    test = folder / "tests" / "pinned" / "test_loss_double_softmax.py"
    text = test.read_text(encoding="utf-8")
    assert (
        "assert_loss_gets_logits(run)" in text
        and "parents[2]" in text
        and 'observe("train.py", root=ROOT, steps=3)' in text
    )
    failed = _pytest(str(test))
    assert failed.returncode == 1 and "The loss gets probabilities" in failed.stdout
    script.write_text(BROKEN.replace(".softmax(-1)", ""), encoding="utf-8")
    assert _pytest(str(test)).returncode == 0
    assert _main("pin", "report.json", "--out", ".") == 0
    assert "parents[0]" in (folder / "test_loss_double_softmax.py").read_text(encoding="utf-8")
    assert not (folder / "last.pt").exists()


def test_a_crash_gives_a_test_without_sawbones_in_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = folder / "train.py"
    script.write_text(CRASHING, encoding="utf-8")
    assert _main("diagnose", "--no-experiments", "--quiet", "--keep-run", "kept", "train.py") == 3
    assert _main("pin", "kept", "--out", "tests", "--verify") == 0
    assert "fails, as it should" in capsys.readouterr().out
    test = folder / "tests" / "test_data_label_out_of_range.py"
    assert "sawbones" not in test.read_text(encoding="utf-8").split('"""', 2)[2]
    script.write_text(CRASHING.replace("3 * (step == 5)", "0"), encoding="utf-8")
    done = _pytest(str(test))
    assert done.returncode == 0, done.stdout
    assert not (folder / "last.pt").exists()


def test_what_cannot_be_pinned_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    healthy = {
        "schema": 2,
        "verdict": "healthy",
        "script": "train.py",
        "steps": 1,
        "seconds": 1.0,
        "environment": {},
    }
    healthy |= {key: [] for key in ("symptoms", "cleared", "findings", "refuted", "could_not_look")}
    Path("healthy.json").write_text(json.dumps(healthy), encoding="utf-8")
    assert _main("pin", "healthy.json") == 1
    assert "nothing to pin in healthy.json: it has no findings" in capsys.readouterr().out
    Path("other.json").write_text("[]", encoding="utf-8")
    assert _main("pin", "other.json") == 2
    assert _main("pin", "missing.json") == 2
    assert "no missing.json" in capsys.readouterr().err


def test_a_file_that_is_not_such_a_test_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sawbones.diagnosis.pinning import PinRefused, write_tests
    from sawbones.schema import Finding

    mine = folder / "test_loss_label_shift.py"
    mine.write_text("# mine\n", encoding="utf-8")
    finding = Finding("loss.label-shift", "proven", 1.0, "x", test="# new\n")
    with pytest.raises(PinRefused, match=r"exists and is not a test that was pinned here"):
        write_tests([finding], folder, folder)
    assert mine.read_text(encoding="utf-8") == "# mine\n"


@pytest.mark.long
def test_a_captured_step_is_pinned_by_running_the_script_and_by_its_bundle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sawbones.capture.bundle import read_bundle
    from sawbones.diagnosis import pinning

    script = folder / "train.py"
    script.write_text(CRASHING, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "kept", "train.py"],
        capture_output=True,
        timeout=200,
    )
    bundle = next((folder / "kept").rglob("*.sawbones"))
    assert _main("pin", str(bundle), "--out", "tests") == 0
    monkeypatch.setattr(pinning, "NEAR_SECONDS", 0.0)
    test, copy = pinning.pin_bundle(read_bundle(bundle), folder / "far", folder)
    assert (
        copy.read_bytes() == bundle.read_bytes()
        and "assert_mended(bundle, root=ROOT, sha256=" in test.read_text(encoding="utf-8")
    )
    near = folder / "tests" / "test_step_000005_of_train.py"
    failed = _pytest(str(near), str(test))
    assert "2 failed" in failed.stdout and "step 5 ends with IndexError" in failed.stdout, (
        failed.stdout
    )
    script.write_text(CRASHING.replace("3 * (step == 5)", "0"), encoding="utf-8")
    passed = _pytest(str(near), str(test))
    assert "2 passed" in passed.stdout, passed.stdout


def test_nothing_failed_in_a_step_captured_by_hand(folder: Path) -> None:
    from sawbones.capture.bundle import Failure
    from sawbones.diagnosis.pinning import PinRefused, pin_bundle

    class ByHand:
        path, failure = folder / "step-000001.sawbones", Failure("by hand", "captured by hand")

    with pytest.raises(PinRefused, match="captured by hand: nothing failed"):
        pin_bundle(ByHand(), folder, folder)  # type: ignore[arg-type]
