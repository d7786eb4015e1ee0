"""Full detail while it is cheap, a sample where it would be felt, and evaluations in between are
not lost.
"""

from __future__ import annotations

from sawbones.observe.detail import DIAGNOSE_IN_FULL, EVALUATION_EVENTS, RUN_IN_FULL, Detail


def test_short_steps_are_sampled_from_where_their_price_is_known() -> None:
    detail = Detail(diagnosing=False)
    turned = [step for step in range(60) if detail.stepped(step, watch_ms=0.4, step_ms=1.0)]
    assert turned == [24] and detail.in_full == 25
    kept = [step for step in range(60) if detail.keeps("step", step, "train")]
    assert kept == [*range(25), 25, 50]
    assert detail.keeps("schedule", 33, "train"), "a rare kind is always kept"


def test_long_steps_stay_in_full_and_one_dear_step_does_not_decide() -> None:
    detail = Detail(diagnosing=False)
    assert not any(
        detail.stepped(step, watch_ms=200.0 if step == 3 else 0.4, step_ms=100.0)
        for step in range(60)
    )
    assert detail.in_full == RUN_IN_FULL


def test_a_diagnosis_keeps_more_whatever_it_costs() -> None:
    detail = Detail(diagnosing=True)
    assert not any(detail.stepped(step, watch_ms=5.0, step_ms=1.0) for step in range(60))
    assert detail.in_full == DIAGNOSE_IN_FULL


def test_evaluations_between_steps_are_kept_up_to_a_limit() -> None:
    detail = Detail(diagnosing=False)
    at = RUN_IN_FULL + 1
    assert detail.keeps("loss", at, "eval") and not detail.keeps("loss", at, "train")
    for _ in range(EVALUATION_EVENTS):
        detail.kept("eval")
    assert not detail.keeps("loss", at, "eval")
