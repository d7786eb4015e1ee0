"""Means of batches that are added up: what they are divided by, read off what is printed."""

from __future__ import annotations

import pytest

from sawbones.faults import read
from sawbones.schema import Batch, Ending, Event, Run
from sawbones.schema.evaluation import Evaluation
from sawbones.store.codec import from_plain

STEPS, SIZE, BATCHES = (10, 20, 30), 25, 4


def _run(divided_by: float, weighed_by: int = 1) -> Run:
    """Three evaluations of four batches; printed is the sum of their means over `divided_by`."""
    values = {s: [8.123 / s + 0.01 * n for n in range(BATCHES)] for s in STEPS}
    plain = {"site": None, "given": [{}], "result": {}, "steps": list(STEPS), "roles": ["output"]}
    loss = {**plain, "id": 0, "op": "mse_loss", "args": ["reduction=mean"], "sources": []}
    item = {**plain, "id": 1, "op": "item", "args": [], "sources": [0]}
    item["reads"] = [[s, v, SIZE] for s in STEPS for v in values[s]]
    item["read_calls"] = [n + 1 for _ in STEPS for n in range(BATCHES)]
    evaluation = {
        "nodes": [{**node, "count": 12} for node in (loss, item)],
        "passes": [{"step": s, "calls": BATCHES, "predictions": {}} for s in STEPS],
        "printed": [[s, f"loss {weighed_by * sum(values[s]) / divided_by:.5f}"] for s in STEPS],
    }
    rows = tuple(range(SIZE))
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        events=tuple(Event(s, "forward", s, 0, "eval", 0.0) for s in STEPS),
        batches=tuple(
            Batch(s, 0, "eval", "loader:1", 0.0, (), rows) for s in STEPS for _ in range(BATCHES)
        ),
        evaluation=from_plain(Evaluation, evaluation),
    )


@pytest.mark.parametrize(
    ("divided_by", "weighed_by", "titles"),
    [
        (BATCHES, 1, []),
        (BATCHES * SIZE, SIZE, []),
        (7, 1, []),
        (
            BATCHES * SIZE,
            1,
            ["Means of batches are added up and divided by the number of samples"],
        ),
        (BATCHES, SIZE, ["Sums over samples are divided by the number of batches"]),
    ],
)
def test_what_a_sum_of_means_is_divided_by(
    divided_by: float, weighed_by: int, titles: list[str]
) -> None:
    found = read(_run(divided_by, weighed_by), "evaluation.metric-averaging", strict=True).findings
    assert [f.title for f in found] == titles and {f.status for f in found} <= {"likely"}
