"""The contract over the whole catalogue: no code per check. Which patients are recorded is decided
in conftest.py.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from contract import Files, complaints
from lab_recordings import FIRST, Recordings

from sawbones.faults import Check, all_checks
from sawbones.lab.ward import beds, truth_lines
from sawbones.schema import Evidence, Finding, Run, Site
from sawbones.scoring.cases import lab_cases

_CASES = {case.fault: case for case in lab_cases() if case.fault}
_CHOSEN = [
    c
    for c in all_checks()
    if c.fault in _CASES and (c.fault in FIRST or os.environ.get("SAWBONES_FULL"))
]


def _files(fault: str, recordings: Recordings) -> Files:
    others = {name: recordings.read(name, True) for name in recordings.beds if name != fault}
    return Files(_CASES[fault], recordings.read(fault, False), recordings.read(fault, True), others)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("check", _CHOSEN, ids=lambda check: check.fault)
def test_fires_on_its_fault_at_its_place_and_on_nothing_else(
    check: Check, recordings: Recordings
) -> None:
    assert list(complaints(check, _files(check.fault, recordings))) == []


def _never(run: Run) -> list[Finding]:
    return []


def _always(run: Run) -> list[Finding]:
    return [
        Finding(
            "loss.double-softmax",
            "likely",
            0.9,
            "always",
            (Site("double_softmax.py", 1, "", ""),),
            (Evidence("x"),),
        )
    ]


@pytest.mark.timeout(1800)
def test_the_contract_rejects_a_check_that_never_fires(recordings: Recordings) -> None:
    real = next(check for check in all_checks() if check.fault == "loss.double-softmax")
    said = list(complaints(replace(real, function=_never), _files(real.fault, recordings)))
    assert said == ["stays silent on its own fault"]


@pytest.mark.timeout(1800)
def test_the_contract_rejects_a_check_that_always_fires(recordings: Recordings) -> None:
    real = next(check for check in all_checks() if check.fault == "loss.double-softmax")
    # One that needs nothing: not every twin holds what the real check needs.
    always = replace(real, function=_always, needs=())
    said = list(complaints(always, _files(real.fault, recordings)))
    assert any("names double_softmax.py:1" in text for text in said)
    assert any("fires on its healthy twin" in text for text in said)
    assert sum("fires on the healthy twin of" in text for text in said) == len(recordings.beds) - 1


@pytest.mark.timeout(1800)
def test_the_contract_rejects_a_check_that_looks_without_its_signal(recordings: Recordings) -> None:
    real = next(check for check in all_checks() if check.fault == "loss.double-softmax")
    files = _files(real.fault, recordings)
    crashed = list(complaints(replace(real, needs=("crash",)), files))
    assert crashed == [
        "could not look at its own fault: needs crash: the script did not crash. Nothing to do"
    ]


def test_every_patient_is_named_by_the_taxonomy_and_marks_its_lines() -> None:
    from sawbones.schema import faults

    assert set(FIRST) <= {bed.fault for bed in beds()} <= set(faults())
    assert all(bed.summary and truth_lines(bed.script) for bed in beds())
