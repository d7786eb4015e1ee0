"""A check that is new says no more than `suspected`."""

from __future__ import annotations

import pytest

from sawbones import faults
from sawbones.diagnosis.engine import Told
from sawbones.schema import Finding


def _finding(status: str) -> Finding:
    return Finding("loop.no-step", status, 0.9, "No step is taken")


def _with_preview(monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    check = faults.Check("loop.no-step", (), (), None, "", (), lambda run: (), preview)
    monkeypatch.setattr(faults, "all_checks", lambda: (check,))


def test_a_proven_finding_of_a_new_check_is_a_suspicion_and_says_why(monkeypatch):
    _with_preview(monkeypatch, True)
    said = faults.as_far_as_known(_finding("proven"))
    assert said.status == "suspected"
    assert "new" in said.evidence[-1].text


def test_a_check_that_has_passed_its_round_keeps_its_status(monkeypatch):
    _with_preview(monkeypatch, False)
    assert faults.as_far_as_known(_finding("proven")) == _finding("proven")


@pytest.mark.parametrize("preview", [True, False])
def test_while_the_script_runs_only_what_the_report_will_call_proven_is_told(monkeypatch, preview):
    _with_preview(monkeypatch, preview)
    told: list[Finding] = []
    Told(told.append).proven([_finding("proven")])
    assert bool(told) is not preview
