"""The triage finds what a subject has, in the layer that has it, and nothing in one that is
well.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import subjects
import torch
from torch import Tensor

import sawbones
from sawbones.report.json_report import exit_code
from sawbones.triage import Grades
from sawbones.triage.probes import PROBES, Bench, CannotTell


def test_a_healthy_subject_passes_every_layer() -> None:
    triage = sawbones.check(subjects.subject, steps=12)
    assert triage.report.findings == ()
    assert triage.report.verdict == "healthy" and exit_code(triage.report) == 0
    assert (
        triage.layers[0] == "data" and triage.layers[-1] == "evaluation" and not triage.not_reached
    )
    assert {probe.fault for probe in PROBES} <= {*triage.report.looked, "loss.wrong-loss"}
    assert triage.report.steps == 12


def test_the_random_streams_go_on_as_if_nothing_had_been_checked() -> None:
    def drawn() -> tuple[object, ...]:
        return torch.rand(2).tolist(), np.random.rand(2).tolist(), random.random()

    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    expected = drawn()
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    sawbones.check(subjects.subject, steps=2)
    assert drawn() == expected


def test_a_function_that_was_compiled_before_hides_nothing() -> None:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    triage = sawbones.check(subjects.double_softmax, layers=("loss",), steps=6)
    assert [f.fault for f in triage.hard] == ["loss.double-softmax"]


@pytest.mark.parametrize("fault", subjects.SICK)
def test_a_fault_is_found_in_its_layer_and_later_layers_wait(fault: str) -> None:
    said: list[tuple[str, str]] = []
    triage = sawbones.check(
        subjects.SICK[fault], steps=12, say=lambda layer, text: said.append((layer, text))
    )
    assert triage.report.verdict == "sick"
    assert triage.hard[0].fault == fault, [(f.fault, f.status) for f in triage.report.findings]
    assert triage.hard[0].where and triage.hard[0].where[0].file.endswith("subjects.py")
    assert said[-1][0] == triage.layers[-1] and triage.layers[-1] in (fault.split(".")[0], "loop")
    assert triage.not_reached


def test_the_learning_rate_is_named_when_another_one_learns_the_batch() -> None:
    triage = sawbones.check(subjects.slow, layers=("loop",), only="*.[lw]r*", steps=6)
    assert triage.hard[0].fault == "optimizer.lr-too-low"
    texts = [e.text for e in triage.hard[0].evidence]
    assert "one repeated batch: loss" in texts[0] and "with the learning rate times" in texts[1]


def test_keep_going_reaches_the_last_layer() -> None:
    triage = sawbones.check(subjects.double_softmax, steps=6, keep_going=True)
    assert triage.not_reached == () and triage.hard[0].fault == "loss.double-softmax"


def test_only_and_layers_narrow_the_look() -> None:
    triage = sawbones.check(subjects.double_softmax, steps=6, only="optimizer.*")
    assert triage.report.verdict == "healthy"
    assert {fault.split(".")[0] for fault in triage.report.looked} == {"optimizer"}
    assert sawbones.check(subjects.double_softmax, layers=("data",)).layers == ("data",)


def test_a_crash_is_reported_with_its_place() -> None:
    triage = sawbones.check(subjects.crashing)
    assert triage.report.verdict == "crashed" and exit_code(triage.report) == 3
    assert "RuntimeError" in triage.report.notes[-1] and "mat1 and mat2" in triage.report.notes[-1]


def test_a_soft_grade_reports_and_does_not_fail() -> None:
    grades = Grades().with_rules("soft", ["loss.double-*"], "--soft")
    report = sawbones.check(
        subjects.double_softmax, layers=("loss",), steps=6, grades=grades
    ).report
    assert report.verdict == "healthy" and [f.status for f in report.findings] == ["suspected"]
    assert report.notes == (
        "loss.double-softmax is likely and does not fail: soft by --soft loss.double-*",
    )


def test_a_hard_grade_fails_on_a_suspicion() -> None:
    fault = "optimizer.decay-on-norm-bias"
    assert (
        sawbones.check(subjects.decaying, layers=("optimizer",), steps=6).report.verdict
        == "healthy"
    )
    grades = Grades().with_rules("hard", [fault], "--hard")
    report = sawbones.check(subjects.decaying, layers=("optimizer",), steps=6, grades=grades).report
    assert report.verdict == "sick" and report.findings[0].fault == fault
    assert any("hard by --hard" in note for note in report.notes)


def test_an_opt_out_is_not_looked_at_and_is_recorded() -> None:
    grades = Grades().with_rules("skip", ["loss.double-softmax"], "--skip")
    report = sawbones.check(
        subjects.double_softmax, layers=("loss",), steps=6, grades=grades
    ).report
    assert report.verdict == "healthy" and report.findings == ()
    assert ("loss.double-softmax", "opted out by --skip loss.double-softmax") in [
        (b.fault, b.why) for b in report.could_not_look
    ]
    assert "loss.double-softmax: opted out by --skip loss.double-softmax" in report.notes


def test_the_last_rule_that_fits_decides() -> None:
    grades = (
        Grades()
        .with_rules("skip", ["loss.*"], "pyproject.toml")
        .with_rules("hard", ["loss.double-softmax"], "--hard")
    )
    assert (
        grades.skips("loss.label-shift") is not None and grades.skips("loss.double-softmax") is None
    )


def test_a_probe_that_cannot_tell_says_why() -> None:
    def flat(model: object, batch: tuple[object, ...]) -> object:
        return model(batch[0]).flatten()  # type: ignore[operator]

    def loss(outputs: Tensor, batch: tuple[object, Tensor]) -> Tensor:
        return subjects.loss(outputs.view(-1, 3), batch)

    probe = next(p for p in PROBES if p.fault == "model.cross-sample-leak")
    with pytest.raises(CannotTell, match="which dimension of the outputs is the batch"):
        probe.act(Bench(replace(subjects.subject, forward=flat, loss=loss), 0))
    probe.act(Bench(subjects.subject, 0))
