"""Labels that count from one under a head that is one score too wide."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sawbones.evidence import NothingToJudge
from sawbones.faults.data.label_out_of_range import check as label_out_of_range
from sawbones.schema import STEP_COLUMNS, Batch, DeepStep, Ending, LossCall, Run, Site, Value
from sawbones.schema.loss import LossFacts
from sawbones.schema.samples import Samples


def run_of(counts: Mapping[int, int], num_classes: int = 5, rows: int = 64, **facts: Any) -> Run:
    """Ten batches with these labels; `facts` are added to those of the loss."""
    table = {name: np.zeros(10) for name in STEP_COLUMNS}
    about = {
        "main": True,
        "reaches_root": True,
        "target_is_index": True,
        "num_classes": num_classes,
        "target_num": rows,
    } | facts
    call = LossCall(
        0,
        "cross_entropy",
        Site("train.py", 9),
        "",
        Value(0, (rows, num_classes), "float32"),
        None,
        1.0,
        LossFacts(**about),
    )
    batch = Batch(
        0, 0, "train", "model", 0.0, ({"path": "x", "shape": [rows, 3], "dtype": "float32"},)
    )
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps=table,
        batches=(batch,),
        deep=(DeepStep(0, 0, losses=(call,)),),
        samples=Samples(labels=(counts,) * 10),
    )


FROM_ONE = {1: 20, 2: 15, 3: 16, 4: 13}


def test_a_first_score_that_is_never_a_target_is_named() -> None:
    (finding,) = label_out_of_range.check(run_of(FROM_ONE))
    assert finding.status == "likely"
    assert "Labels count from 1" in finding.title


@pytest.mark.parametrize(
    ("counts", "changed"),
    [
        ({0: 1, **FROM_ONE}, {}),  # the first class is rare
        ({2: 20, 3: 15, 4: 16}, {}),  # two classes are missing: no shift by one
        ({1: 60, 2: 60, 3: 60, 4: 1}, {}),  # classes as rare as the missing one may be
        (FROM_ONE, {"ignore_index": 0}),  # 0 means no label
        (FROM_ONE, {"target_num": 640}),  # a target for every position, where 0 pads by custom
        ({1: 32, 2: 32}, {"num_classes": 4}),  # the last is missing as well
    ],
)
def test_classes_that_are_rare_reserved_or_tokens_stay_silent(
    counts: dict[int, int], changed: dict[str, Any]
) -> None:
    assert list(label_out_of_range.check(run_of(counts, **changed))) == []


VOID = {-1: 21, 0: 20, 1: 15, 2: 16, 3: 13}


def lowered(counts: Mapping[int, int], ignored: int = -1, **facts: Any) -> Run:
    """Four deep steps whose targets are these."""
    run = run_of({}, target_counts=dict(counts), ignore_index=ignored, **facts)
    return replace(run, deep=run.deep * 4)


@pytest.mark.parametrize("void", [-1, 255])
def test_labels_that_lost_one_too_many_are_named(void: int) -> None:
    counts = {void if label == -1 else label: n for label, n in VOID.items()}
    (finding,) = label_out_of_range.check(lowered(counts, void))
    assert finding.status == "likely" and "one too low" in finding.title


@pytest.mark.parametrize(
    "run",
    [
        lowered({**VOID, 4: 12}),  # every score is asked for: -1 marks what has no label
        lowered({**VOID, -1: 1}),  # hardly anything is ignored: the last class is missing
        lowered({0: 20, 1: 15, 2: 16, 3: 13}),
        lowered({-100 if n == -1 else n: c for n, c in VOID.items()}, -100),
        lowered(VOID, copied_at=1),  # tokens of the input
    ],
)
def test_a_mark_for_no_label_and_a_class_that_is_missing_are_silent(run: Run) -> None:
    with suppress(NothingToJudge):
        assert not list(label_out_of_range.check(run))
