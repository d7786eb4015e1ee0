"""kill -9 at any moment: the recording can be read, no process stays, no file of the user's is
changed.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from ended import Patient, moments

from sawbones.report.summary import run_summary
from sawbones.store import RunNotFound, read_run

UNTIL = 14.0
WROTE = ("last.pt", "log.txt")


@pytest.mark.parametrize("moment", moments(25, UNTIL), ids="{:.1f}s".format)
def test_a_killed_run_can_be_read(tmp_path: Path, moment: float) -> None:
    patient = Patient.admitted(tmp_path)
    before = patient.state(*WROTE)
    running = patient.start("-m", "sawbones", "run", "--quiet", "--out", "kept", "train.py")
    running.wait_and_look(moment)
    running.send(signal.SIGKILL)
    assert running.ended()[0] == -signal.SIGKILL
    assert running.left_alive() == []
    assert patient.state("kept", *WROTE) == before
    try:
        run = read_run(patient.folder / "kept")
    except RunNotFound:
        assert not (patient.folder / "log.txt").exists(), "it had trained, and nothing was recorded"
        return
    assert run.ending.kind == "killed"
    assert "train.py" in run_summary(run)


@pytest.mark.parametrize("moment", moments(25, UNTIL), ids="{:.1f}s".format)
def test_a_killed_diagnosis_takes_its_children_with_it(tmp_path: Path, moment: float) -> None:
    patient = Patient.admitted(tmp_path)
    before = patient.state()
    running = patient.start(
        "-m", "sawbones", "diagnose", "--quiet", "--keep-run", "kept", "train.py"
    )
    running.wait_and_look(moment)
    running.send(signal.SIGKILL)
    assert running.ended()[0] == -signal.SIGKILL
    assert running.left_alive() == []
    assert patient.state("kept") == before
    if (patient.folder / "kept" / "run.db").exists():
        assert read_run(patient.folder / "kept").ending.kind in ("killed", "terminated")
