"""Evaluated samples that equal trained ones without being copies: few forms, and calls that are a
part of training.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from sawbones.faults.evaluation.leak_contamination.check import check
from sawbones.faults.evaluation.wrong_split.check import check as validated
from sawbones.observe.batches import describe
from sawbones.observe.fingerprints import batch_fingerprints
from sawbones.schema import Batch, DeepStep, Ending, Event, LossCall, Run
from sawbones.schema.evaluation import Evaluation, EvaluationPass
from sawbones.schema.loaded import Restored
from sawbones.schema.loss import LossFacts
from sawbones.schema.value import Value
from sawbones.stats.splits import splits

DRAWN = torch.Generator().manual_seed(0)


def batch(rows: torch.Tensor, step: int, phase: str, source: str) -> Batch:
    facts = (describe("[0]", rows, values=True),)
    return Batch(step, 0, phase, source, 0.0, facts, batch_fingerprints([rows]), 0)


def run_of(
    trained: torch.Tensor, evaluated: torch.Tensor, sources: tuple[str, str], rounds: int = 1
) -> Run:
    parts = [p for _ in range(rounds) for p in trained.split(50)]
    seen = [batch(rows, i, "train", sources[0]) for i, rows in enumerate(parts)]
    seen.append(batch(evaluated, len(seen), "eval", sources[1]))
    num = len(parts)
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps={"step": np.arange(num), "optimizer": np.zeros(num)},
        batches=tuple(seen),
        events=tuple(Event(i, "backward", i, 0, "train", 0.0) for i in range(num)),
    )


LOADERS = ("loader:0", "loader:1")


def test_one_hot_rows_are_few_forms_although_they_are_real_numbers() -> None:
    codes = torch.eye(12)[torch.randint(0, 12, (900,), generator=DRAWN)]
    assert list(check(run_of(codes[:600], codes[600:], LOADERS))) == []


def test_measured_rows_that_come_again_are_copies() -> None:
    rows = torch.randn(900, 4, generator=DRAWN)
    assert len(list(check(run_of(rows[:600], rows[500:], LOADERS)))) == 1


def _drawings(num: int, places: int) -> torch.Tensor:
    """Bars of ones, of few lengths, that begin at few or many places."""
    begins = torch.randint(0, places, (num, 2), generator=DRAWN)
    lengths = torch.randint(3, 7, (num, 2), generator=DRAWN)
    dots = torch.arange(4 * places + 8)
    lines = (dots >= 4 * begins[..., None]) & (dots < 4 * begins[..., None] + lengths[..., None])
    return lines.flatten(1).float()


def test_drawings_of_a_few_numbers_coincide_and_copies_of_many_are_copies() -> None:
    few = _drawings(3000, 8)
    assert list(check(run_of(few[:2500], few[2500:], LOADERS))) == []
    many = _drawings(3000, 400)
    assert list(check(run_of(many[:2500], many[2500:], LOADERS))) == []
    assert len(list(check(run_of(many[:2500], many[2300:], LOADERS)))) == 1


def test_sentences_of_a_small_grammar_coincide() -> None:
    starts = torch.randint(0, 9, (3000, 2), generator=DRAWN)
    texts = torch.cat([(starts[:, :1] + k) % 9 for k in range(4)], 1)
    texts = torch.cat([texts, *((starts[:, 1:] + k) % 9 for k in range(4))], 1)
    assert list(check(run_of(texts[:2500], texts[2500:], LOADERS))) == []


def test_long_texts_in_both_parts_are_copies_without_a_loader() -> None:
    texts = torch.randint(0, 500, (900, 18), generator=DRAWN)
    mixed = texts[500:][torch.randperm(400, generator=DRAWN)]
    plain = ("model", "model")
    assert len(list(check(run_of(texts[:600], mixed, plain, rounds=3)))) == 1
    assert list(check(run_of(texts[:600], texts[600:], plain, rounds=3))) == []


def test_calls_that_make_the_targets_are_no_evaluation() -> None:
    states = torch.randn(900, 4, generator=DRAWN)
    mixed = states[500:][torch.randperm(400, generator=DRAWN)]
    run = run_of(states[:600], mixed, ("model", "model"), rounds=3)
    assert len(list(check(run))) == 1
    asked = tuple(EvaluationPass(step) for step in range(run.num_steps))
    facts = LossFacts(main=True, target_made_by="add")
    value = Value(0, (50, 1), "float32")
    call = LossCall(0, "mse_loss", None, "", value, value, 1.0, facts)
    deep = tuple(DeepStep(step, 0, losses=(call,)) for step in (1, 2))
    bootstrapped = replace(run, evaluation=Evaluation(passes=asked), deep=deep)
    assert list(check(bootstrapped)) == []


def test_sparse_wide_rows_are_read_in_whole() -> None:
    bags = torch.zeros(200, 5000)
    bags.scatter_(1, torch.randint(0, 5000, (200, 14), generator=DRAWN), 1.0)
    prints = batch_fingerprints([bags])
    assert len(set(prints)) == 200
    assert batch_fingerprints([bags[50:70]]) == prints[50:70]


def _resumed(drawn_anew: bool, empty: bool = False) -> Run:
    """Two stages of 10 steps each; the second goes on from the checkpoint of the first."""
    rows = torch.randn(600, 4, generator=torch.Generator().manual_seed(1))
    order = torch.randperm(600, generator=DRAWN) if drawn_anew else torch.arange(600)
    seen = []
    for stage, picked in enumerate((torch.arange(600), order)):
        for i, part in enumerate(rows[picked[:500]].split(50)):
            seen.append(batch(part, 10 * stage + i, "train", f"loader:{2 * stage}"))
        held_out = rows[picked[500:]]
        seen.append(batch(held_out, 10 * stage + 10, "eval", f"loader:{2 * stage + 1}"))
    kept = {"kinds": ["model", "optimizer", "step"]}
    events = [Event(i, "backward", i, 0, "train", 0.0) for i in range(10)]
    events += [Event(10, "save", 10, 0, "train", 0.0, data=kept)]
    events += [Event(11, "load", 10, 0, "eval", 0.0, data=kept)]
    events += [Event(12 + i, "backward", 10 + i, 0, "train", 0.0) for i in range(10)]
    events += [Event(30, "step", 10, 0, "train", 0.0, data={"optimizer": 1})]
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps={"step": np.arange(20), "optimizer": np.repeat([0, 1], 10)},
        batches=tuple(seen),
        events=tuple(events),
        restored=(Restored("optimizer", 1, 10, 11, empty=empty),),
    )


def test_a_split_that_is_drawn_anew_at_a_resume_evaluates_trained_rows() -> None:
    assert len(list(check(_resumed(drawn_anew=True)))) == 1
    assert list(check(_resumed(drawn_anew=False))) == []
    assert list(check(_resumed(drawn_anew=True, empty=True))) == []  # a fold that starts over


def test_rows_that_are_predicted_first_and_trained_on_later_are_no_copies() -> None:
    rows = torch.randn(600, 6, generator=DRAWN)
    seen: list[Batch] = []
    step = 0
    for week, new in enumerate(rows.split(20), 1):
        seen.append(batch(new, step, "eval", "model"))
        for part in rows[: 20 * week].split(50):
            seen.append(batch(part, step, "train", "model"))
            step += 1
    run = replace(
        run_of(rows[:50], rows[:20], ("model", "model")),
        steps={"step": np.arange(step), "optimizer": np.zeros(step)},
        batches=tuple(seen),
        events=tuple(Event(i, "backward", i, 0, "train", 0.0) for i in range(step)),
    )
    assert list(validated(run)) == []
    again = batch(rows[:200], step, "eval", "model")
    (part,) = splits(replace(run, batches=(*seen, again)))
    assert part.trained_on == set(again.fingerprints)
