"""The plain mean of the classes' recalls is a score of its own, not a wrong mean of batches."""

from __future__ import annotations

import pytest

from sawbones.faults import read
from sawbones.schema import Batch, Ending, Event, Run
from sawbones.schema.evaluation import Evaluation
from sawbones.store.codec import from_plain

RECALLS, SIZES = (0.9, 0.5), (40, 10)


def _run(read_calls: tuple[int, ...]) -> Run:
    """Two numbers are read off in each of three evaluations, and their plain mean is printed."""
    steps = (10, 20, 30)
    plain = {"site": None, "args": [], "given": [{}], "result": {}, "steps": list(steps)}
    mean = {**plain, "id": 0, "op": "mean", "roles": ["output"], "sources": [], "count": 6}
    item = {
        **plain,
        "id": 1,
        "op": "item",
        "roles": ["output"],
        "sources": [0],
        "count": 6,
        "reads": [[s, v, n] for s in steps for v, n in zip(RECALLS, SIZES, strict=True)],
        "read_calls": [call for _ in steps for call in read_calls],
    }
    evaluation = {
        "nodes": [mean, item],
        "passes": [{"step": s, "calls": 2, "predictions": {}} for s in steps],
        "printed": [[s, f"score {sum(RECALLS) / 2:.4f}"] for s in steps],
    }
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        events=tuple(Event(s, "forward", s, 0, "eval", 0.0) for s in steps),
        batches=tuple(Batch(s, 0, "eval", "loader:1", 0.0, (), (s,)) for s in steps),
        evaluation=from_plain(Evaluation, evaluation),
    )


@pytest.mark.parametrize(("read_calls", "fires"), [((1, 2), True), ((2, 2), False)])
def test_only_numbers_of_single_batches_are_a_mean_over_batches(
    read_calls: tuple[int, ...], fires: bool
) -> None:
    found = read(_run(read_calls), "evaluation.metric-averaging", strict=True).findings
    assert [f.status for f in found] == (["proven"] if fires else [])
