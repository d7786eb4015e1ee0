"""The score of a perfect model, printed as a share, is also 1 %: no mistake may be read off it."""

from __future__ import annotations

from sawbones.evidence.rescoring import BY_COLUMN, misscored
from sawbones.schema import Ending, Run
from sawbones.schema.evaluation import Evaluation, Scored, ScoredWay

STEPS = range(10, 60, 10)


def _run(right: float, by_column: float, printed: str) -> Run:
    scored = tuple(
        Scored(step, 400, 7, (16, 64), 3, 1 / 3, by_column, largest=ScoredWay(right, (right,) * 7))
        for step in STEPS
    )
    lines = tuple((step, f"loss {0.9 / step:.4f}, accuracy {printed}") for step in STEPS)
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        evaluation=Evaluation(scored=scored, printed=lines),
    )


def test_a_perfect_share_is_not_taken_for_one_percent_down_the_columns() -> None:
    assert misscored(_run(1.0, 0.01, "1.000"), (BY_COLUMN,)) is None


def test_the_score_down_the_columns_is_recognised_as_a_share_and_as_a_percentage() -> None:
    for printed in ("0.013", "1.300"):
        found = misscored(_run(0.95, 0.013, printed), (BY_COLUMN,))
        assert found is not None and found.mistake == BY_COLUMN
