"""A recording as it would be had it ended earlier."""

from __future__ import annotations

import numpy as np

from sawbones.diagnosis.pinning import first_steps
from sawbones.schema import Ending, Run
from sawbones.schema.evaluation import Evaluation, EvaluationPass
from sawbones.schema.one_off import FirstNonfinite


def test_what_came_later_is_left_out() -> None:
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps={"step": np.arange(40.0), "loss": np.ones(40)},
        evaluation=Evaluation(passes=(EvaluationPass(10, 2), EvaluationPass(30, 2))),
        nonfinite=FirstNonfinite("log", 35),
    )
    early = first_steps(run, 20)
    assert [entry.step for entry in early.evaluation.passes] == [10]
    assert early.nonfinite is None and early.num_steps == 20
    late = first_steps(run, 38)
    assert late.evaluation == run.evaluation and late.nonfinite == run.nonfinite
