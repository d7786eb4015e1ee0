"""Curves of other trackers in, recordings out: written and read back with the real libraries."""

from __future__ import annotations

import csv
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest

import sawbones
from sawbones.cli.main import main
from sawbones.diagnosis.curves import diagnose_log
from sawbones.integrations.exports import FORMATS
from sawbones.integrations.logs import read_log
from sawbones.schema.curve import Log, curve

RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.02, 200)
FALLING = 2 * np.exp(-np.arange(200) / 40) + 0.2 + NOISE


def _call(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    return int(end.value.code or 0)


def _log(values: np.ndarray, every: int = 1, **others: np.ndarray) -> Log:
    curves = [curve("train/loss", [(i * every, float(v)) for i, v in enumerate(values)])]
    for name, series in others.items():
        points = [(int(i), float(v)) for i, v in enumerate(series)]
        curves.append(curve(name, [(i * every * len(values) // len(series), v) for i, v in points]))
    return Log("log", tuple(curves))


def _seen(log: Log) -> dict[str, str]:
    return {symptom.symptom: symptom.cls for symptom in diagnose_log(log).symptoms}


def test_a_curve_that_falls_shows_nothing_and_is_not_called_healthy() -> None:
    report = diagnose_log(_log(FALLING))
    assert report.symptoms == () and report.verdict == "inconclusive"
    assert any("sawbones run train.py" in note for note in report.notes)


def test_what_is_wrong_to_see_is_named_and_only_what_is_certain_is_ill() -> None:
    flat, exploding = 1.1 + NOISE, np.exp(np.arange(200) / 20) + NOISE
    broken = FALLING.copy()
    broken[150:] = math.nan
    spiky = FALLING.copy()
    spiky[120] = 9.0
    assert _seen(_log(flat)) == {"does-not-learn": "notable"}
    assert _seen(_log(exploding)) == {"diverges": "ill"}
    assert _seen(_log(1 + np.arange(200) / 200 + NOISE)) == {"diverges": "notable"}
    assert _seen(_log(broken)) == {"non-finite": "ill"}
    assert _seen(_log(spiky)) == {"spikes": "notable"}
    rising = np.concatenate([np.linspace(2, 1, 5), np.linspace(1.05, 2.5, 15)])
    assert _seen(_log(FALLING, val_loss=rising)) == {"overfits": "notable"}


def test_steps_are_those_of_the_log() -> None:
    spiky = FALLING.copy()
    spiky[120] = 9.0
    (symptom,) = diagnose_log(_log(spiky, every=50)).symptoms
    assert symptom.steps == (6000,) and "step 6000" in symptom.text


def test_a_csv_of_lightning_with_gaps_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "metrics.csv"
    lines = ["epoch,step,train_loss,val_acc"]
    for step in range(60):
        lines += [f"0,{step},{1.1 + NOISE[step]},", f"0,{step},,0.5"]
    file.write_text("\n".join(lines))
    assert _call("diagnose", "--from", "csv", str(file)) == 4
    assert "the loss does not fall" in capsys.readouterr().out
    file.write_text("a,b\n1,2\n")
    assert _call("diagnose", "--from", "csv", str(file)) == 2
    assert "--loss NAME. There are: a, b" in capsys.readouterr().err


@pytest.fixture(scope="module")
def losses(project: Path) -> list[float]:
    return [float(value) for value in sawbones.read_run(project / "run").losses]


def _exported(project: Path, form: str, out: Path, needs: str = "") -> Path:
    if needs:
        pytest.importorskip(needs, reason=f"needs the tracker {needs}")
    assert _call("export", "--to", form, "--out", str(out), str(project / "run")) == 0
    return out


def test_wildcards_name_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        lines = ["step,loss", *(f"{step},{1.1 + NOISE[step]}" for step in range(60))]
        (tmp_path / name / "metrics.csv").write_text("\n".join(lines))
    assert _call("diagnose", "--from", "csv", f"{tmp_path}/f*/*.csv") == 4
    assert "the loss does not fall" in capsys.readouterr().out
    assert _call("diagnose", "--from", "csv", f"{tmp_path}/*/*.csv") == 2
    told = capsys.readouterr().err
    assert "one run at a time" in told and "second/metrics.csv" in told
    assert _call("diagnose", "--from", "csv", f"{tmp_path}/third*/*.csv") == 2
    assert "no " in capsys.readouterr().err


def _written(folder: Path, values: dict[int, float], tag: str = "loss", **settings: int) -> None:
    """A file of its own, as each start of a script writes one."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), **settings) as writer:
        for step, value in values.items():
            writer.add_scalar(tag, value, step)
    time.sleep(1.1)  # the name of a file holds the second


def test_a_run_that_was_begun_again_is_read_as_it_went_on(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the tracker tensorboard")
    run = tmp_path / "run"
    _written(run, dict.fromkeys(range(0, 100, 10), 5.0))
    _written(run, dict.fromkeys(range(55, 80, 5), 3.0))  # from the checkpoint of step 50
    _written(run, dict.fromkeys(range(0, 100, 50), 0.5), "val_loss")
    log = read_log("tensorboard", run)
    found = log.named("loss")
    assert found is not None
    assert found.steps == [*range(0, 51, 10), *range(55, 80, 5)]
    assert found.values == [5.0] * 6 + [3.0] * 5
    assert log.named("val_loss").steps == [0, 50]  # type: ignore[union-attr]
    (note,) = log.notes
    assert "begun again at step 55" in note and note in diagnose_log(log).notes
    again = read_log("tensorboard", *sorted(run.glob("events*")))
    assert again.named("loss") == found
    assert read_log("tensorboard", f"{tmp_path}/r*/events*").named("loss") == found
    _written(run, dict.fromkeys(range(3), 2.0))
    assert read_log("tensorboard", run).named("loss").steps == [0, 1, 2]  # type: ignore[union-attr]


def test_what_a_writer_takes_back_is_gone(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the tracker tensorboard")
    _written(tmp_path / "run", dict.fromkeys(range(40), 5.0))
    _written(tmp_path / "run", dict.fromkeys((45, 46), 1.0), purge_step=20)
    found = read_log("tensorboard", tmp_path / "run").named("loss")
    assert found is not None and found.steps == [*range(20), 45, 46]


def test_several_runs_are_named_and_none_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="needs the tracker tensorboard")
    for name in ("first", "second"):
        _written(tmp_path / name, {0: 1.0, 1: 1.0})
    assert _call("diagnose", "--from", "tensorboard", str(tmp_path)) == 2
    told = capsys.readouterr().err
    assert "one run at a time" in told and "first" in told and "second" in told


def test_a_long_log_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="needs the tracker tensorboard")
    from sawbones.cli import narration

    monkeypatch.setattr(narration, "READING_SAID_S", 0.0)
    _written(tmp_path / "run", {step: 1.0 + step % 7 for step in range(41_000)})
    assert _call("diagnose", "--from", "tensorboard", str(tmp_path / "run")) == 4
    lines = [line for line in capsys.readouterr().err.splitlines() if "reading" in line]
    assert len(lines) == 2 and "40,000 values, file 1 of 1" in lines[1]
    assert _call("diagnose", "--quiet", "--from", "tensorboard", str(tmp_path / "run")) == 4
    assert "reading" not in capsys.readouterr().err


def test_csv_is_read_back_and_diagnosed(project: Path, tmp_path: Path, losses: list[float]) -> None:
    out = _exported(project, "csv", tmp_path / "run.csv")
    with out.open() as file:
        assert [float(row["loss"]) for row in csv.DictReader(file)] == losses
    found = read_log("csv", out).named("loss")
    assert found is not None and found.values == losses and found.steps == list(range(40))


def test_parquet_is_read_back(project: Path, tmp_path: Path, losses: list[float]) -> None:
    out = _exported(project, "parquet", tmp_path / "run.parquet", "pyarrow")
    from pyarrow import parquet

    table = parquet.read_table(out)
    assert table["loss"].to_pylist() == losses
    assert b"loop.no-zero-grad" in table.schema.metadata[b"sawbones.findings"]


def test_perfetto_has_every_step_and_the_lines_of_events(
    project: Path, tmp_path: Path, losses: list[float]
) -> None:
    trace = json.loads(_exported(project, "perfetto", tmp_path / "t.json").read_text())
    shown = trace["traceEvents"]
    assert sum(e["ph"] == "X" and e["name"].startswith("step ") for e in shown) == len(losses)
    counted = [e["args"]["loss"] for e in shown if e["ph"] == "C" and e["name"] == "loss"]
    assert counted == losses
    backward = next(e for e in shown if e["name"] == "backward")
    assert backward["args"]["where"].startswith("train.py:")
    assert all(e["ts"] >= 0 and e.get("dur", 0) >= 0 for e in shown if e["ph"] != "M")


@pytest.mark.parametrize(("form", "needs"), [("tensorboard", "tensorboard")])
def test_trackers_keep_the_curve_and_it_is_read_back(
    project: Path, tmp_path: Path, losses: list[float], form: str, needs: str
) -> None:
    out = _exported(project, form, tmp_path / form, needs)
    found = read_log(form, out).named("loss")
    assert found is not None and found.steps == list(range(40))
    assert np.allclose(found.values, losses, rtol=1e-6)


def test_every_format_has_its_file_and_its_word() -> None:
    from sawbones.cli.export import FORMATS as offered

    assert set(offered) == set(FORMATS)


def test_an_existing_place_is_not_overwritten(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "run.csv"
    taken.write_text("mine")
    assert _call("export", "--to", "csv", "--out", str(taken), str(project / "run")) == 2
    assert "is there already" in capsys.readouterr().err and taken.read_text() == "mine"
