"""Evaluated rows with relatives among those trained on: which column says so, and which rows would
have to go.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from sawbones.observe.sources.containers import copy_rows, read
from sawbones.observe.sources.strangers import Column, find_strangers
from sawbones.trials.strangers import _least_rise

GROUPS, OF_ONE = 40, 10
COUNT = GROUPS * OF_ONE


def _table(own: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patient, inputs in which patients differ by so much, label."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(GROUPS), OF_ONE).astype(np.float32)
    inputs = rng.normal(0, own, (GROUPS, 6))[patient.astype(int)] + rng.normal(0, 1, (COUNT, 6))
    return patient, inputs.astype(np.float32), rng.integers(0, 2, COUNT).astype(np.float32)


def _split() -> tuple[list[int], list[int]]:
    order = np.random.default_rng(1).permutation(COUNT)
    return sorted(order[:300].tolist()), sorted(order[300:].tolist())


def test_a_group_that_the_inputs_give_away_is_found() -> None:
    patient, inputs, label = _table(own=3.0)
    train, held = _split()
    (found,) = find_strangers([Column("patient", patient, False)], inputs, label, train, held)
    assert (found.column, found.kind) == ("patient", "group")
    gone = set(patient[list(found.overwritten)].tolist())
    assert gone == set(patient[list(found.strangers)].tolist())
    assert not gone & set(patient[list(found.taken)].tolist())
    assert np.array_equal(label[list(found.overwritten)], label[list(found.taken)])
    assert not found.one_answer


def test_groups_that_have_one_answer_each_are_known_by_it() -> None:
    patient, inputs, _ = _table(own=3.0)
    train, held = _split()
    columns = [Column("patient", patient, False)]
    for label, told in ((patient % 2, True), (patient, False), (patient > 37, False)):
        (found,) = find_strangers(columns, inputs, label.astype(np.float32), train, held)
        assert found.one_answer is told


def test_a_group_that_the_inputs_say_nothing_of_is_not_tried() -> None:
    patient, inputs, label = _table(own=0.0)
    train, held = _split()
    assert find_strangers([Column("patient", patient, False)], inputs, label, train, held) == []


def test_a_group_that_the_model_is_given_is_not_tried() -> None:
    patient, inputs, label = _table(own=3.0)
    inputs[:, 0] = patient / 7 - 2
    train, held = _split()
    assert find_strangers([Column("patient", patient, False)], inputs, label, train, held) == []


def test_a_group_with_a_column_for_each_is_not_tried() -> None:
    patient, inputs, label = _table(own=3.0)
    one_by_one = np.eye(GROUPS, dtype=np.float32)[patient.astype(int)][:, 1:]
    told = np.concatenate([inputs, one_by_one], axis=1)
    train, held = _split()
    assert find_strangers([Column("patient", patient, False)], told, label, train, held) == []


def test_a_phase_of_a_series_is_no_group() -> None:
    hour = (np.arange(COUNT) % 20).astype(np.float32)
    angle = hour * (2 * np.pi / 20)
    inputs = np.stack([np.sin(angle), np.cos(angle)], 1).astype(np.float32)
    label = np.zeros(COUNT, np.float32)
    train, held = _split()
    tried = [Column("hour", hour, False)], inputs, label, train, held
    assert find_strangers(*tried, is_series=True) == []
    assert [f.column for f in find_strangers(*tried)] == ["hour"]  # dealt out, not a series


def test_groups_that_were_kept_apart_are_not_tried() -> None:
    patient, inputs, label = _table(own=3.0)
    train, held = list(range(300)), list(range(300, COUNT))
    assert find_strangers([Column("patient", patient, False)], inputs, label, train, held) == []


def test_with_dates_the_rows_from_after_the_last_evaluated_ones_go() -> None:
    _, inputs, label = _table(own=0.0)
    days = np.arange(COUNT, dtype=np.float32)
    train, held = _split()
    (found,) = find_strangers([Column("day", days, True)], inputs, label, train, held)
    assert found.kind == "time"
    assert max(found.taken) < min(found.strangers)
    assert min(found.overwritten) >= max(found.taken)


def test_a_rise_in_one_group_alone_is_no_rise() -> None:
    clusters = [g for g in range(10) for _ in range(20)]
    before = np.zeros(200)
    after = np.where(np.array(clusters) == 3, 1.0, 0.0)
    assert _least_rise(before, after, clusters) < 0
    assert _least_rise(before, np.ones(200), clusters) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(80.0).reshape(40, 2),
        torch.arange(80.0).reshape(40, 2),
        pd.DataFrame({"a": np.arange(40), "b": [str(i) for i in range(40)]}),
        pd.Series(np.arange(40)),
        [{"a": i} for i in range(40)],
        [[float(i), 0.0] for i in range(40)],
    ],
    ids=["array", "tensor", "table", "column", "records", "lists"],
)
def test_rows_become_copies_of_others(value: object) -> None:
    before = read(value)
    assert before is not None
    assert copy_rows(value, np.array([3, 5]), np.array([10, 11]))
    after = read(value)
    assert after is not None
    assert after.hashes[[3, 5]].tolist() == before.hashes[[10, 11]].tolist()
    assert np.delete(after.hashes, [3, 5]).tolist() == np.delete(before.hashes, [3, 5]).tolist()


def test_dates_stand_as_days_whether_they_are_moments_or_texts() -> None:
    days = pd.date_range("2024-01-01", periods=40)
    table = pd.DataFrame({"when": days, "text": [str(d.date()) for d in days], "x": range(40)})
    rows = read(table)
    assert rows is not None
    assert rows.dates == (0, 1)
    assert np.allclose(np.diff(rows.numbers[:, 0]), 1.0)
    assert np.array_equal(rows.numbers[:, 0], rows.numbers[:, 1])
