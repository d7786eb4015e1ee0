"""Experiments of independent findings run at the same time where there are cores for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sawbones.diagnosis import engine
from sawbones.schema import Ending, Finding, Run
from sawbones.trials.bench import Bench, ChildFailed, Patient


@pytest.mark.parametrize(
    ("cores", "at_once"), [(None, 1), (1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (64, 4)]
)
def test_children_share_no_core(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, at_once: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert engine._experiments_at_once() == at_once


def test_verdicts_come_in_the_order_of_the_findings(tmp_path: Path) -> None:
    names = ["label_shift_scan", "loss_at_initialisation", "causality", "skip_batch"]
    findings = [Finding("loss.label-shift", "likely", 0.9, name, experiment=name) for name in names]
    run = Run("train.py", (), "", {}, Ending("finished"))
    with Bench(Patient("train.py", (), tmp_path), 10) as bench:
        verdicts = engine._verdicts(bench, findings, run)
    assert [v.experiment for v in verdicts] == names
    assert {v.outcome for v in verdicts} == {"open"}


def test_nothing_is_started_after_an_interrupt(tmp_path: Path) -> None:
    with Bench(Patient("train.py", (), tmp_path), 10, partial=True) as bench:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(ChildFailed, match="interrupted"):
            bench.rerun()
        finding = Finding("loss.label-shift", "likely", 0.9, "t", experiment="label_shift_scan")
        findings, refuted, notes = engine.decide(
            bench, Run("train.py", (), "", {}, Ending("finished")), [finding], lambda text: None
        )
    assert [f.verdict.outcome for f in findings if f.verdict] == ["open"]
    assert not refuted and "interrupted" in notes[0]
