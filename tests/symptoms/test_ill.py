"""The ill symptoms on curves drawn by hand: one that shows each, one that comes close."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import FOUR_CLASSES, LINE, drawn, falling, noisy

from sawbones import symptoms
from sawbones.schema import Ending, Finding, Optimizer, Run, Symptom, Value


def seen(run: Run, name: str) -> Symptom | None:
    found = symptoms.read(run, strict=True).symptoms
    return next((symptom for symptom in found if symptom.symptom == name), None)


def blind(run: Run, name: str) -> str:
    unseen = symptoms.read(run, strict=True).could_not_see
    return next((item.why for item in unseen if item.symptom == name), "")


def text(run: Run, name: str) -> str:
    found = seen(run, name)
    assert found is not None, blind(run, name)
    assert found.cls == "ill"
    return found.text


class TestNonFinite:
    def test_counts_the_losses_and_names_the_first_step(self) -> None:
        losses = falling(60)
        losses[16:] = np.nan
        run = drawn(losses)
        assert text(run, "non-finite") == "44 of 60 losses are NaN, the first at step 16"
        assert seen(run, "non-finite").steps == (16,)

    def test_names_the_operator_where_it_is_known(self) -> None:
        losses = falling(60)
        losses[30] = np.inf
        born = {"op": "log", "step": 30, "site": {"file": "train.py", "line": 7}}
        run = drawn(losses, facts={"nonfinite": born})
        assert text(run, "non-finite").endswith("it came out of log at step 30 (train.py:7)")

    def test_a_loss_that_was_not_read_is_none(self) -> None:
        losses = falling(60)
        run = drawn(losses)
        losses = losses.copy()
        losses[20] = np.nan
        run = replace(run, steps={**run.steps, "loss": losses})
        assert seen(run, "non-finite") is None

    def test_a_step_that_the_scaler_left_out_is_none(self) -> None:
        losses = falling(60)
        losses[3] = np.nan
        skipped = np.zeros(60)
        skipped[3] = 1
        assert seen(drawn(losses, columns={"skipped": skipped}), "non-finite") is None
        assert seen(drawn(losses), "non-finite") is not None


class TestEndings:
    def test_a_crash_names_exception_and_line(self) -> None:
        ending = Ending("exception", 1, "ValueError", "bad shape\nmore", site=LINE)
        told = text(drawn(falling(30), ending=ending), "crashes")
        assert told == "the script crashed after 30 steps: ValueError: bad shape (train.py:12)"

    def test_an_exit_with_a_status_is_a_crash_and_one_without_is_none(self) -> None:
        assert "exit status 3" in text(drawn(falling(), ending=Ending("exit", 3)), "crashes")
        assert seen(drawn(falling(), ending=Ending("exit", 0)), "crashes") is None

    def test_a_run_that_was_stopped_by_its_user_has_not_crashed(self) -> None:
        for kind in ("interrupted", "terminated", "budget", "killed"):
            assert seen(drawn(falling(), ending=Ending(kind)), "crashes") is None

    def test_running_out_of_memory_is_no_other_crash(self) -> None:
        ending = Ending("exception", 1, "OutOfMemoryError", "CUDA out of memory.", site=LINE)
        run = drawn(falling(), ending=ending)
        assert "memory ran out after 120 steps" in text(run, "out-of-memory")
        assert seen(run, "crashes") is None

    def test_standing_still_names_the_line(self) -> None:
        run = drawn(falling(30), ending=Ending("hang", site=LINE))
        assert text(run, "hangs") == "the script stands still after 30 steps at train.py:12"


class TestDoesNotLearn:
    def test_a_flat_loss_at_the_constant_answer(self) -> None:
        run = drawn(noisy(np.full(128, 1.38)))
        assert text(run, "does-not-learn").startswith("the loss does not fall (1.38")
        assert text(run, "does-not-learn").endswith(
            "over 128 steps; a constant answer scores 1.386)"
        )

    def test_a_loss_that_falls_to_the_constant_answer_and_no_further(self) -> None:
        run = drawn(falling(start=4.0, end=1.386, pace=20.0))
        assert "falls no further than a constant answer" in text(run, "does-not-learn")

    def test_a_flat_loss_well_under_the_constant_answer_is_a_trained_model(self) -> None:
        run = drawn(noisy(np.full(128, 0.9)))
        assert seen(run, "does-not-learn") is None
        assert blind(run, "does-not-learn") == ""

    def test_a_loss_that_still_falls_is_given_time(self) -> None:
        assert seen(drawn(noisy(np.linspace(1.6, 1.36, 128))), "does-not-learn") is None

    def test_falling_back_from_where_the_run_threw_itself_is_no_excuse(self) -> None:
        back = noisy(np.geomspace(2e4, 300.0, 127), noise=20.0)
        told = text(drawn(np.concatenate([[1.39], back])), "does-not-learn")
        assert told.startswith("the loss left its first value of 1.39 and has not come back (")
        assert seen(drawn(np.concatenate([[2e4], back])), "does-not-learn") is None

    def test_one_bad_batch_at_the_end_has_not_thrown_the_run(self) -> None:
        losses = noisy(np.linspace(1.6, 1.36, 128))
        losses[-5] = 4e3
        assert seen(drawn(losses), "does-not-learn") is None

    def test_noise_that_hides_a_gain_leaves_it_open(self) -> None:
        assert seen(drawn(noisy(np.full(60, 1.36), noise=0.4)), "does-not-learn") is None

    def test_few_steps_tell_nothing(self) -> None:
        assert "too few" in blind(drawn(noisy(np.full(20, 1.386))), "does-not-learn")

    def test_a_rate_that_warms_up_tells_nothing(self) -> None:
        run = drawn(noisy(np.full(100, 1.386)), columns={"lr": np.linspace(0.0, 0.1, 100)})
        assert blind(run, "does-not-learn") == "the learning rate was still warming up"

    def test_weights_that_never_change_do_not_learn_whatever_the_loss(self) -> None:
        still = {"update_norm": np.zeros(40), "param_norm": np.full(40, 3.0)}
        run = drawn(noisy(np.full(40, -7.0)), columns=still, call=None)
        assert "no weight changes over 40 steps" in text(run, "does-not-learn")
        assert "no weight" not in blind(
            drawn(noisy(np.full(15, -7.0)), columns={k: v[:15] for k, v in still.items()}),
            "does-not-learn",
        )

    def test_targets_that_are_values_are_measured_by_their_variance(self) -> None:
        call = {"fn": "mse_loss", "target": Value(2, (400,), "float32", mean=3.0, std=2.0)}
        assert "scores 4)" in text(drawn(noisy(np.full(80, 4.1)), call=call), "does-not-learn")
        assert seen(drawn(noisy(np.full(80, 3.0)), call=call), "does-not-learn") is None

    def test_accumulation_divides_the_loss_and_the_constant_answer_alike(self) -> None:
        run = drawn(noisy(np.full(80, 1.386 / 4), noise=0.005), call={"root_over_mean": 0.25})
        assert seen(run, "does-not-learn").value == pytest.approx(1.386, abs=0.01)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (None, "no loss of targets was recognised"),
        ({"target_made_by": "add"}, "the targets are computed"),
        ({"target_made_by": "randn_like"}, "the targets are computed"),
        ({"target_requires_grad": True}, "the targets are computed"),
        ({"smoothing": 0.1}, "weighted or smoothed"),
        ({"has_weight": True}, "weighted or smoothed"),
        ({"fn": "ctc_loss"}, "no constant answer is known for ctc_loss"),
        ({"target_counts": {2: 400}}, "one class alone"),
        ({"target_counts": {}, "target_is_whole": False}, "no classes"),
    ],
)
def test_no_constant_answer_is_made_up_where_there_is_none(
    call: dict[str, object] | None, why: str
) -> None:
    run = drawn(noisy(np.full(100, 1.386)), call=call)
    for name in ("does-not-learn", "diverges"):
        assert seen(run, name) is None
        assert why in blind(run, name)


class TestDiverges:
    def test_a_loss_that_climbs_above_the_constant_answer(self) -> None:
        told = text(drawn(noisy(np.linspace(1.4, 3.9, 128))), "diverges")
        assert told.startswith("the loss climbs (1.5")
        assert told.endswith("over 128 steps; a constant answer scores 1.386)")

    def test_a_loss_that_is_maximised_by_mistake(self) -> None:
        run = drawn(-noisy(np.linspace(1.4, 3.9, 128)), call={"root_over_mean": -1.0})
        assert "the backward pass starts from its negative" in text(run, "diverges")

    def test_climbing_is_one_symptom(self) -> None:
        assert seen(drawn(noisy(np.linspace(1.4, 3.9, 128))), "does-not-learn") is None

    def test_a_bump_under_the_constant_answer_is_none(self) -> None:
        assert seen(drawn(noisy(np.linspace(0.3, 0.6, 128))), "diverges") is None

    def test_two_players_of_a_game_owe_nothing(self) -> None:
        both = tuple(Optimizer(i, "Adam", {}, ({},)) for i in (0, 1))
        turns = {"optimizer": np.arange(128) % 2}
        run = drawn(noisy(np.linspace(1.4, 3.9, 128)), optimizers=both, columns=turns)
        assert "several optimizers share the run" in blind(run, "diverges")

    def test_an_unknown_objective_diverges_only_where_the_weights_do(self) -> None:
        losses = noisy(np.geomspace(0.1, 50.0, 100), noise=0.001)
        assert blind(drawn(losses, call=None), "diverges")
        runaway = {"param_norm": np.geomspace(10.0, 5e4, 100)}
        assert "the weights are 5e+03 times" in text(
            drawn(losses, call=None, columns=runaway), "diverges"
        )

    def test_a_second_stage_is_not_held_against_the_first(self) -> None:
        run = drawn(noisy(np.concatenate([np.full(60, 0.5), np.full(60, 9.0)])))
        turns = {"optimizer": np.repeat([0.0, 1.0], 60)}
        staged = replace(run, steps={**run.steps, **turns})
        assert "trains in stages" in blind(staged, "diverges")


class TestDoesNotGeneralise:
    def test_evaluation_that_never_beats_a_constant_answer(self) -> None:
        run = drawn(falling(), evaluations=[(40, 1.5), (80, 1.6), (119, 1.7)])
        told = text(run, "does-not-generalise")
        assert told.startswith("the evaluation loss is never under 1.5; training ends at 0.2")

    def test_one_good_evaluation_is_enough(self) -> None:
        run = drawn(falling(), evaluations=[(40, 1.1), (80, 1.6), (119, 1.7)])
        assert seen(run, "does-not-generalise") is None

    def test_nothing_learned_has_nothing_to_generalise(self) -> None:
        run = drawn(noisy(np.full(100, 1.386)), evaluations=[(40, 1.5), (99, 1.5)])
        assert seen(run, "does-not-generalise") is None

    def test_hits_outweigh_a_loss_that_confident_mistakes_have_raised(self) -> None:
        evaluations = [(40, 1.5), (119, 2.5)]
        good = drawn(falling(), evaluations=evaluations, facts=_hits(0.7))
        assert seen(good, "does-not-generalise") is None
        poor = drawn(falling(), evaluations=evaluations, facts=_hits(0.2))
        assert "never under 1.5" in text(poor, "does-not-generalise")

    def test_hits_alone_decide_where_all_evaluations_are_late(self) -> None:
        late = drawn(falling(), evaluations=[(119, None)], facts=_hits(0.2))
        told = text(late, "does-not-generalise")
        assert told.startswith("evaluation is right in 20.0% of 400 answers, the commonest class")
        early = drawn(falling(), evaluations=[(119, None)], facts=_hits(0.2, first=10))
        assert "no loss of the trained kind" in blind(early, "does-not-generalise")

    def test_what_was_learned_by_heart_alone_does_not_carry_over(self) -> None:
        slow, flat = noisy(np.linspace(1.386, 1.3, 132)), noisy(np.full(132, 1.386))

        def told(losses: np.ndarray, share: float) -> Symptom | None:
            run = drawn(losses, evaluations=[(len(losses) - 1, None)], facts=_hits(share))
            return seen(run, "does-not-generalise")

        found = told(slow, 0.2)
        assert found is not None
        assert found.text.startswith("evaluation is right in 20.0% of 400 answers")
        assert told(slow, 0.4) is None
        assert told(slow[:80], 0.2) is None
        assert told(flat, 0.2) is None


def _hits(share: float, first: int = 119) -> dict[str, object]:
    node = {
        "id": 0,
        "op": "eq",
        "roles": ["output", "target"],
        "args": [],
        "sources": [],
        "given": [],
        "result": {"mean": share, "num": 400},
        "steps": [119],
        "count": 1,
        "hits": [[first, round(share * 400), 400]],
        "target_counts": {str(k): n for k, n in FOUR_CLASSES.items()},
    }
    passes = [{"step": first, "calls": 1, "predictions": {}}]
    return {"evaluation": {"nodes": [node], "passes": passes}}


class TestExplaining:
    flat = (Symptom("does-not-learn", "ill", "the loss does not fall"),)

    def test_the_first_certain_finding_that_can_cause_it_explains_it(self) -> None:
        findings = [
            Finding("model.dead-units", "suspected", 0.5, ""),
            Finding("evaluation.wrong-split", "proven", 0.9, ""),
            Finding("loop.memory-leak", "proven", 0.9, ""),
            Finding("loss.double-softmax", "likely", 0.9, ""),
            Finding("model.bad-init", "proven", 0.9, ""),
        ]
        (symptom,) = symptoms.explained(self.flat, findings)
        assert symptom.explained_by == "loss.double-softmax"
        assert not symptom.stands

    def test_a_finding_that_cannot_cause_it_leaves_it_standing(self) -> None:
        findings = [Finding("pipeline.starved", "proven", 0.9, "")]
        (symptom,) = symptoms.explained(self.flat, findings)
        assert symptom.stands
