"""Every finding can be pinned: the test fails on the lab's broken script and passes on the mended
one.

The whole lab with SAWBONES_FULL=1 (faults that only a GPU shows where there is one); else a slice
with one of each kind.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from pinned_lab import examine

import sawbones.testing
from sawbones.faults import all_checks
from sawbones.lab.ward import Bed, beds
from sawbones.testing.pins import PINS, ways

QUICK = ("loop.no-zero-grad", "data.class-imbalance")
SLICE = {
    "loop.no-zero-grad": "property",
    "model.causal-leak": "property",
    "pipeline.token-out-of-vocab": "plain",
    "optimizer.decay-on-norm-bias": "property",
    "data.class-imbalance": "check",
}


def _is_here(bed: Bed) -> bool:
    return bed.device == "cpu" or torch.cuda.is_available()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "bed",
    [
        pytest.param(bed, marks=() if bed.fault in QUICK else pytest.mark.long)
        for bed in beds()
        if bed.fault in SLICE or (os.environ.get("SAWBONES_FULL") and _is_here(bed))
    ],
    ids=lambda bed: bed.fault,
)
def test_fails_on_the_broken_script_and_passes_on_the_mended_one(bed: Bed, tmp_path: Path) -> None:
    case = examine(bed, tmp_path)
    assert case.broken is not None, (
        f"{case.pinned.kind} test passes on the broken script:\n{case.pinned.text}"
    )
    assert case.mended is None, f"{case.pinned.kind} test fails on the mended script: {case.mended}"
    assert case.pinned.kind == SLICE.get(bed.fault, case.pinned.kind)


def test_every_check_of_the_catalogue_has_its_way_to_be_pinned() -> None:
    found = ways()
    assert set(found) == {check.fault for check in all_checks()} and set(PINS) <= set(found)
    assert (
        found["pipeline.token-out-of-vocab"] == "running"
        and found["optimizer.lr-too-high"] == "assert_free_of"
    )
    assert found["loop.resume-incomplete"] == "assert_resumes_exactly"


def test_every_pin_names_a_public_assertion() -> None:
    assert {pin.assertion for pin in PINS.values()} <= set(sawbones.testing.__all__)
