"""Every finding can be pinned: the test fails on the lab's broken script and passes on the mended one.

The whole lab with SAWBONES_FULL=1; else a slice with one of each kind.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pinned_lab import examine

import sawbones.testing
from sawbones.checks import all_checks
from sawbones.lab.ward import Bed, beds
from sawbones.schema import faults
from sawbones.testing.pins import BY_CHECK, PINS

SLICE = {
    "loop.no-zero-grad": "property",
    "model.causal-leak": "property",
    "pipeline.token-out-of-vocab": "plain",
    "optimizer.decay-on-norm-bias": "property",
    "loss.weighting": "check",
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "bed", [bed for bed in beds() if bed.fault in SLICE or os.environ.get("SAWBONES_FULL")], ids=lambda bed: bed.fault
)
def test_fails_on_the_broken_script_and_passes_on_the_mended_one(bed: Bed, tmp_path: Path) -> None:
    case = examine(bed, tmp_path)
    assert case.broken is not None, f"{case.pinned.kind} test passes on the broken script:\n{case.pinned.text}"
    assert case.mended is None, f"{case.pinned.kind} test fails on the mended script: {case.mended}"
    assert case.pinned.kind == SLICE.get(bed.fault, case.pinned.kind)


def test_every_check_of_the_catalogue_has_its_way_to_be_pinned() -> None:
    by_running = {check.fault for check in all_checks() if "crash" in check.needs}
    assert not set(PINS) & set(BY_CHECK)
    assert {check.fault for check in all_checks()} == set(PINS) | set(BY_CHECK) | by_running
    assert set(PINS) <= set(faults())


def test_every_pin_names_a_public_assertion() -> None:
    assert {pin.assertion for pin in PINS.values()} <= set(sawbones.testing.__all__)
