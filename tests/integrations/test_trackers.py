"""Trackers: findings told, runs exported and logs read, each by the tracker's own library.

The libraries are not among the packages of the tests, since they pin others: `make trackers` runs
these in an environment of their own.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sawbones
from sawbones.cli.main import main
from sawbones.diagnosis import diagnose_run
from sawbones.integrations import trackers
from sawbones.integrations.logs import LogNotReadable, read_log, wandb_log
from sawbones.schema import Report

LOSS_TOLERANCE = 1e-6


def _call(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    return int(end.value.code or 0)


def _needs(package: str) -> Any:
    return pytest.importorskip(package, reason=f"needs the tracker {package}")


@pytest.fixture
def report(project: Path) -> Report:
    return diagnose_run(sawbones.read_run(project / "run")).report


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path),
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
        "TRACKIO_DIR": str(tmp_path / "trackio"),
        "HF_HUB_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    yield


# ----- always, without any library


def test_a_tracker_that_there_is_not_and_one_that_is_missing_are_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call("diagnose", "--to", "neptune", str(project / "run")) == 2
    assert "no tracker 'neptune'. There are: tensorboard, wandb" in capsys.readouterr().err
    with pytest.raises(trackers.NotTold, match="There are"):
        from sawbones.integrations.recording import Recording

        Recording("lightning.Trainer", None, False, "neptune")


def test_what_is_told_has_no_secret_and_alerts_are_for_causes(report: Report) -> None:
    from dataclasses import replace

    (finding,) = report.findings
    secret = replace(finding, title="the token hf_abcdefghijklmnopqrstuvwxyz0123456789 is used")
    suspected = replace(finding, fault="loop.no-step", status="suspected")
    changed = replace(report, findings=(secret, suspected))
    assert "hf_abcdef" not in str(trackers.told(changed))
    assert [name for name, _ in trackers.pressing(changed)] == ["loop.no-zero-grad"]


# ----- each with its library


def test_tensorboard_has_text_and_markers(project: Path, tmp_path: Path) -> None:
    _needs("tensorboard")
    assert _call("diagnose", "--to", "tensorboard:logs", str(project / "run")) == 1
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events: Any = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    steps = [e.step for e in events.Scalars("sawbones/loop.no-zero-grad")]
    assert {1, 2, 3} <= set(steps), "the steps of the evidence"
    text = events.Tensors("sawbones/loop.no-zero-grad/text_summary")[0].tensor_proto.string_val[0]
    assert b"Gradients are never cleared" in text and b"train.py:" in text


def test_wandb_has_an_alert_and_the_summary_of_the_active_run(
    report: Report, tmp_path: Path
) -> None:
    wandb = _needs("wandb")
    run = wandb.init(project="mine", settings=wandb.Settings(silent=True, console="off"))
    run.log({"loss": 1.0})
    trackers.tell(report, "wandb")
    assert wandb.run is run, "the run goes on"
    run.finish()
    wandb.teardown()
    (file,) = tmp_path.rglob("run-*.wandb")
    records = list(wandb_log.records(file))
    alerts = [r.alert for r in records if r.WhichOneof("record_type") == "alert"]
    assert [a.title for a in alerts] == ["Sawbones: loop.no-zero-grad"]
    assert "train.py:" in alerts[0].text
    summary = str([r.summary for r in records if r.WhichOneof("record_type") == "summary"])
    assert "sawbones/verdict" in summary and "sick" in summary


def test_wandb_gets_a_run_and_gives_it_back(project: Path, tmp_path: Path) -> None:
    _needs("wandb")
    _round_trip(project, tmp_path, "wandb")


def test_mlflow_has_tags_and_a_page_of_the_active_run(report: Report) -> None:
    mlflow = _needs("mlflow")
    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    with mlflow.start_run() as run:
        trackers.tell(report, "mlflow")
    client = mlflow.MlflowClient()
    tags = client.get_run(run.info.run_id).data.tags
    assert tags["sawbones.verdict"] == "sick"
    assert tags["sawbones.loop.no-zero-grad"].startswith(("likely", "proven"))
    assert mlflow.search_runs(filter_string="tags.`sawbones.verdict` = 'sick'").shape[0] == 1
    page = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/sawbones/report.md")
    assert "loop.no-zero-grad" in page


def test_mlflow_gets_a_run_and_gives_it_back(project: Path, tmp_path: Path) -> None:
    _needs("mlflow")
    _round_trip(project, tmp_path, "mlflow")


def test_a_file_that_wandb_did_not_write_is_refused(tmp_path: Path) -> None:
    _needs("wandb")
    (tmp_path / "run-1.wandb").write_bytes(b"x" * 100)
    with pytest.raises(LogNotReadable, match="no file of W&B"):
        read_log("wandb", tmp_path)


def _round_trip(project: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    assert _call("export", "--to", form, "--out", str(out), str(project / "run")) == 0
    losses = [float(value) for value in sawbones.read_run(project / "run").losses]
    found = read_log(form, out).named("loss")
    assert found is not None and found.steps == list(range(40))
    assert found.values == pytest.approx(losses, rel=LOSS_TOLERANCE)
    assert _call("diagnose", "--from", form, str(out)) == 4, "curves alone are never healthy"


TRACKIO = """
import sys
from pathlib import Path
from sawbones.cli.main import main

try:
    main(["export", "--to", "trackio", "--out", sys.argv[2], sys.argv[1]])
except SystemExit as end:
    assert not end.code, end.code
from trackio import Api
from trackio.sqlite_storage import SQLiteStorage

(run,) = Api().runs("sawbones")
print([alert["title"] for alert in run.alerts()])
print([row["loss"] for row in SQLiteStorage.get_logs("sawbones", run.name)])
"""


def test_trackio_has_the_curve_and_an_alert_of_each_cause(project: Path, tmp_path: Path) -> None:
    _needs("trackio")
    place = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", TRACKIO, str(project / "run"), str(place)],
        capture_output=True,
        text=True,
        timeout=200,
        env={name: value for name, value in os.environ.items() if name != "TRACKIO_DIR"},
    )
    assert done.returncode == 0, done.stderr
    *_, titles, losses = done.stdout.strip().splitlines()
    assert "Sawbones: sick" in titles and "Sawbones: loop.no-zero-grad" in titles
    wanted = [float(value) for value in sawbones.read_run(project / "run").losses]
    assert ast.literal_eval(losses) == pytest.approx(wanted, rel=LOSS_TOLERANCE)
