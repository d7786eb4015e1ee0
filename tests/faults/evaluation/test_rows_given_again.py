"""Rows that a model was trained on, among those it is evaluated on, whatever fed them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.evidence import NothingToJudge
from sawbones.faults.evaluation.leak_contamination.check import check
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run

DRAWN = torch.Generator().manual_seed(0)
ROWS = torch.randn(900, 6, generator=DRAWN)


def found(
    *evaluated: torch.Tensor,
    trained: torch.Tensor = ROWS[:600],
    folds: int = 1,
    norm: nn.Module | None = None,
) -> int:
    """How many findings there are where one model is trained, and then asked in these calls."""
    log = PassLog(SiteFinder(""))
    model = nn.Sequential(norm or nn.Identity(), nn.Linear(trained.shape[1], 2))
    for batch in trained.split(50):
        log.trains(model, ((batch,), {}))
    for rows in evaluated:
        log.answered(model, ((rows,), {}), model(rows))
    run = Run("train.py", (), "", {}, Ending("finished"))
    steps = {"step": np.arange(folds), "optimizer": np.arange(folds)}
    return len(list(check(replace(run, populations=compare_passes(log), steps=steps))))


def test_rows_oversampled_before_the_split_are_copies_although_no_loader_evaluates_them() -> None:
    rare = ROWS[:20][torch.randint(0, 20, (300,), generator=DRAWN)]
    mixed = torch.cat([rare, ROWS[600:]])[torch.randperm(600, generator=DRAWN)]
    assert found(mixed) == 1


def test_new_rows_are_none() -> None:
    assert found(ROWS[600:]) == 0


def test_scores_on_training_rows_beside_new_ones_and_on_all_rows_are_none() -> None:
    assert found(ROWS[:150], ROWS[600:750]) == 0
    assert found(ROWS) == 0


def test_rows_that_a_model_may_have_met_in_another_fold_are_none() -> None:
    assert found(ROWS[500:800]) == 1
    assert found(ROWS[500:800], folds=2) == 0


def test_rows_of_few_values_are_equal_by_chance() -> None:
    drawn = torch.randint(0, 4, (900, 6), generator=DRAWN).float()
    with pytest.raises(NothingToJudge):
        found(drawn[600:], trained=drawn[:600])


def test_a_score_on_training_rows_that_were_changed_for_training_is_none() -> None:
    log, model = PassLog(SiteFinder("")), nn.Linear(6, 2)
    for rows in ROWS[:600].split(50):
        noisy = torch.cat([rows[:10], rows[10:] + 0.1])
        log.trains(model, ((noisy,), {}), loaded=[rows], loader="loader:0")
    for loader, expected in (("loader:0", None), ("loader:1", 60)):
        asked = ROWS[:300]
        log.answered(model, ((asked,), {}), model(asked), loaded=[asked], loader=loader)
        copied = compare_passes(log).copied
        assert (copied and copied.copies) == expected
        log.passes.clear()


def test_statistics_that_are_taken_anew_of_training_rows_are_no_evaluation() -> None:
    assert found(ROWS[500:800], norm=nn.BatchNorm1d(6).eval()) == 1
    assert found(ROWS[500:800], norm=nn.BatchNorm1d(6)) == 0


def test_square_waves_among_others_are_met_again_by_chance() -> None:
    phase = torch.randint(0, 40, (900, 1), generator=DRAWN) / 40 + torch.arange(16) / 16
    waves = ROWS.repeat(1, 3)[:, :16].clone()
    waves[::3] = torch.sign(torch.sin(6.2832 * phase + 0.01))[::3]
    assert found(waves[600:], trained=waves[:600]) == 0
    copied = torch.cat([waves[600:], ROWS.repeat(1, 3)[1:600:3, :16][:60]])
    assert found(copied, trained=waves[:600]) == 1


def test_a_second_model_has_not_met_the_rows_of_the_first() -> None:
    log, models = PassLog(SiteFinder("")), [nn.Linear(6, 2), nn.Linear(6, 2)]
    for model, rows in zip(models, (ROWS[:600], ROWS[300:]), strict=True):
        log.trains(model, ((rows,), {}))
    log.answered(models[1], ((ROWS[:300],), {}), models[1](ROWS[:300]))
    assert compare_passes(log).passes[0].known == 0


def test_rows_that_come_out_of_a_trained_part_are_no_records() -> None:
    """Features of an embedding stay as they are where it got no gradient."""
    log, head = PassLog(SiteFinder("")), nn.Linear(6, 2)
    table = nn.Embedding.from_pretrained(ROWS, freeze=False)
    for ids in torch.arange(600).split(50):
        log.trains(head, ((table(ids),), {}))
    with torch.no_grad():
        asked = table(torch.arange(400, 900))
        log.answered(head, ((asked,), {}), head(asked))
    assert compare_passes(log).copied is None
