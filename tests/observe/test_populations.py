"""Evaluations as populations: what is one pass, which is far worse than its siblings, which copy
answers otherwise, and which column carries the answer.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from sawbones.evidence.populations import is_by_precision, kind_of
from sawbones.observe.populations.columns import _exceptions, is_id
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run
from sawbones.schema.populations import Population, Populations, RowKind
from sawbones.stats.splits import differ_as_wholes

ROWS = 400


class _Loop:
    """A trained model that decides by the sum of its first two inputs, and its log."""

    def __init__(self) -> None:
        self.log = PassLog(SiteFinder(""))
        self.model = nn.Linear(4, 2)
        with torch.no_grad():
            self.model.weight.copy_(torch.tensor([[-1.0, -1, 0, 0], [1, 1, 0, 0]]))
            self.model.bias.zero_()
        self.generator = torch.Generator().manual_seed(0)
        self.log.trains(self.model, ((self.rows(),), {}))

    def rows(self, count: int = ROWS) -> torch.Tensor:
        return torch.randn(count, 4, generator=self.generator)

    def ask(self, rows: torch.Tensor, wanted: torch.Tensor, model: nn.Module | None = None) -> None:
        chosen = model or self.model
        self.log.answered(chosen, ((rows,), {}), chosen(rows))
        self.log.asked(wanted)

    def told(self) -> Populations:
        return compare_passes(self.log)


def _truth(rows: torch.Tensor) -> torch.Tensor:
    return (rows[:, 0] + rows[:, 1] > 0).long()


def test_classes_are_numbered_anew_only_beside_an_evaluation_that_knows_them() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    rows = loop.rows()
    loop.ask(rows, 1 - _truth(rows))
    recoded = loop.told().recoded
    assert recoded is not None and recoded.names == ((0, 1), (1, 0))
    turned = _Loop()  # its loss was maximised: at no time is it right
    with torch.no_grad():
        turned.model.weight.neg_()
    for share in (0.2, 0.0):
        rows = turned.rows()
        lucky = torch.rand(ROWS, generator=turned.generator) < share
        turned.ask(rows, _truth(rows) ^ lucky.long())
    assert turned.told().recoded is None


def test_two_evaluations_from_one_source_are_not_told_apart() -> None:
    loop = _Loop()
    for _ in range(4):
        rows = loop.rows()
        wrong = torch.rand(ROWS, generator=loop.generator) < 0.1
        loop.ask(rows, _truth(rows) ^ wrong.long())
    told = loop.told()
    assert len(told.passes) == 4
    assert told.worse == ()


def test_a_column_in_another_unit_is_pipeline_drift() -> None:
    loop = _Loop()
    first, second = loop.rows(), loop.rows()
    loop.ask(first, _truth(first))
    wanted = _truth(second)
    second[:, 1] *= 25.4
    loop.ask(second, wanted)
    worst = loop.told().worse[0]
    assert kind_of(worst) == "deployment.pipeline-drift"
    assert worst.columns[0].column == 1
    assert 20 < worst.columns[0].spread < 30


def test_a_relation_that_changed_is_concept_drift() -> None:
    loop = _Loop()
    first, second = loop.rows(), loop.rows()
    loop.ask(first, _truth(first))
    loop.ask(second, (second[:, 0] - second[:, 1] > 0).long())
    assert kind_of(loop.told().worse[0]) == "deployment.concept-drift"


def test_inputs_that_moved_are_a_covariate_shift() -> None:
    loop = _Loop()
    first, second = loop.rows(), loop.rows() + 1.5
    loop.ask(first, _truth(first))
    loop.ask(second, (second[:, 0] + second[:, 1] > 3).long())
    assert kind_of(loop.told().worse[0]) == "deployment.covariate-shift"


def test_a_part_of_an_evaluation_is_a_subgroup() -> None:
    loop = _Loop()
    rows = loop.rows()
    wanted = _truth(rows)
    odd = rows[:, 2] > 0.8
    wanted[odd] = 1 - wanted[odd]
    loop.ask(rows, wanted)
    loop.ask(rows[odd].clone(), wanted[odd])
    worst = loop.told().worse[0]
    assert worst.is_part
    assert kind_of(worst) == "deployment.subgroup"


def test_rows_that_were_trained_on_are_no_reference() -> None:
    loop = _Loop()
    known = loop.rows()
    loop.log.trains(loop.model, ((known,), {}))
    loop.ask(known, _truth(known))
    new = loop.rows()
    loop.ask(new, 1 - _truth(new))
    assert loop.told().worse == ()


def test_answers_are_compared_in_the_unit_of_the_targets() -> None:
    loop = _Loop()
    loop.model = nn.Linear(4, 1)
    loop.log.trains(loop.model, ((loop.rows(),), {}))
    for moved in (0.0, 6.0):
        rows = loop.rows()
        with torch.no_grad():
            right = loop.model(rows)[:, 0] + 0.02 * torch.randn(ROWS, generator=loop.generator)
        rows = rows + moved * torch.tensor([1.0, 0, 0, 0])
        loop.ask(rows, 250 * right + 900)  # the script divides its targets by their spread
    told = loop.told()
    assert told.passes[0].score < 10
    assert kind_of(told.worse[0]) in ("deployment.covariate-shift", "deployment.pipeline-drift")


def test_a_training_call_forgets_what_was_evaluated_before() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    loop.log.trains(loop.model, ((loop.rows(),), {}))
    assert loop.log.passes == []
    new = loop.rows(100)
    loop.ask(new, _truth(new))
    assert [p.rows for p in loop.told().passes] == [100]


def test_a_run_that_is_stopped_while_it_trains_is_judged_by_its_last_evaluation() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    loop.log.trains(loop.model, ((loop.rows(),), {}))
    assert [p.rows for p in loop.told().passes] == [ROWS]


def test_batches_of_one_array_are_one_pass() -> None:
    loop = _Loop()
    rows = loop.rows()
    for batch in rows.split(64):
        loop.ask(batch, _truth(batch))
    (one,) = loop.told().passes
    assert one.rows == ROWS
    assert one.score == 1.0


def test_a_copy_with_other_weights_is_compared_on_the_same_rows() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    served = copy.deepcopy(loop.model)
    with torch.no_grad():
        served.weight[:, 1] *= 0.2
    loop.ask(rows, _truth(rows), served)
    (pair,) = loop.told().served
    assert pair.copy is not None
    assert pair.apart > 0.05
    assert pair.lower > 0.03


def test_a_second_model_is_no_copy() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    loop.ask(rows, _truth(rows), nn.Sequential(nn.Linear(4, 2)))
    assert loop.told().served == ()


def test_rows_prepared_otherwise_are_told_by_column() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    loop.ask(rows * torch.tensor([1.0, 10.0, 1.0, 1.0]), _truth(rows))
    (pair,) = [p for p in loop.told().served if p.num_prepared and p.trained == 0]
    assert pair.prepared[0].column == 1
    assert np.isclose(pair.prepared[0].factor, 10.0, rtol=1e-3)


def test_a_shuffled_column_is_no_second_preparation() -> None:
    """Permutation importance, as many scripts compute it."""
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    for column in (0, 1):
        other = rows.clone()
        other[:, column] = rows[torch.randperm(ROWS, generator=loop.generator), column]
        loop.ask(other, _truth(rows))
    told = [p for p in loop.told().served if p.lower and p.lower > 0.03]
    assert told == []


def test_the_column_that_carries_the_answer_is_measured() -> None:
    loop = _Loop()
    with torch.no_grad():
        loop.model.weight.copy_(torch.tensor([[0.0, 0, 0, 1], [0, 0, 0, -1]]))
    rows = loop.rows()
    wanted = (torch.rand(ROWS, generator=loop.generator) < 0.4).long()
    rows[:, 3] = torch.where(wanted > 0, -1 - torch.rand(ROWS, generator=loop.generator), 1.0)
    loop.ask(rows, wanted)
    column = loop.told().column
    assert column.column == 3
    assert column.filled == 1.0
    assert column.scrambled < 0.7 < column.alone


def test_two_columns_that_share_the_answer_are_not_asked_about() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.ask(rows, _truth(rows))
    assert loop.told().column is None


def test_exceptions_to_a_single_cut_are_counted() -> None:
    values = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 4.0])
    assert _exceptions(values, np.array([True, True, True, False, False, False])) == 0
    assert _exceptions(values, np.array([False, False, False, True, True, True])) == 0
    assert _exceptions(values, np.array([True, True, False, False, True, False])) == 2


def test_a_kind_of_row_that_the_script_holds_beside_them_is_searched() -> None:
    camera = np.where(np.arange(ROWS) % 10 == 0, "old", "new")
    loop = _Loop()
    rows = loop.rows()
    wanted = _truth(rows)
    wanted[::10] = 1 - wanted[::10]
    loop.ask(rows, wanted)
    (worst,) = loop.told().worse
    assert worst.kinds == (RowKind("camera", "old"),)
    assert len(camera) == ROWS


def test_what_was_made_after_training_began_is_no_kind_of_row() -> None:
    """The mistakes themselves are often held as a column."""
    loop = _Loop()
    rows = loop.rows()
    wanted = _truth(rows)
    mistakes = np.arange(ROWS) % 10 == 0
    wanted[mistakes] = 1 - wanted[mistakes]
    loop.ask(rows, wanted)
    assert loop.told().worse == ()


def test_a_service_that_asks_row_by_row_is_one_pass() -> None:
    loop = _Loop()
    for row in loop.rows(60):
        one = row[None].clone()
        loop.ask(one, _truth(one))
    (only,) = loop.told().passes
    assert only.rows == 60


def test_alarms_that_are_false_far_more_often_are_a_label_shift() -> None:
    loop = _Loop()
    first, second = loop.rows(4000), loop.rows(16000)
    noise = 0.7 * loop.rows(4000).sum(1) / 2, 0.7 * loop.rows(16000).sum(1) / 2
    for rows, extra, keep in ((first, noise[0], 1.0), (second, noise[1], 0.05)):
        wanted = (rows[:, 0] + rows[:, 1] + extra > 0).long()
        rare = torch.rand(len(rows), generator=loop.generator) < keep
        kept = (wanted == 0) | rare
        loop.ask(rows[kept], wanted[kept])
    worst = loop.told().worse[0]
    assert is_by_precision(worst)
    assert kind_of(worst) == "deployment.label-shift"


def test_an_id_is_told_from_a_measurement() -> None:
    rng = np.random.default_rng(0)
    ids = rng.permutation(5000)[:300].astype(np.float64)
    scaled = ((ids - ids.mean()) / ids.std()).astype(np.float32).astype(np.float64)
    assert is_id(ids)
    assert is_id(scaled)
    assert not is_id(rng.normal(size=300))
    assert not is_id(np.round(rng.normal(size=300), 1))


def test_wide_rows_thatdiffer_as_wholes_are_no_copies() -> None:
    def run(known: float) -> Run:
        seen = Populations((Population(200, known),))
        return Run("x.py", (), "", {}, Ending("finished"), populations=seen)

    assert differ_as_wholes(run(0.0), 150)
    assert not differ_as_wholes(run(0.3), 150)
    assert not differ_as_wholes(run(0.0), 400)


def test_the_score_without_copied_rows_stands_beside_the_claimed_one() -> None:
    loop = _Loop()
    known = loop.rows(100)
    loop.log.trains(loop.model, ((known,), {}))
    new = loop.rows(100)
    both = torch.cat([known, new])
    wanted = _truth(both)
    wanted[100:150] = 1 - wanted[100:150]
    loop.ask(both, wanted)
    (one,) = loop.told().passes
    assert (one.known, one.score, one.new_score) == (0.5, 0.75, 0.5)


def test_a_mask_that_answers_meet_is_a_target_only_where_they_agree() -> None:
    loop = _Loop()
    rows = loop.rows()
    loop.log.answered(loop.model, ((rows,), {}), loop.model(rows))
    assert not loop.log.asked(rows[:, 2] > 0, surely=False)
    assert loop.log.asked(_truth(rows) == 1, surely=False)
    assert loop.told().passes[0].score == 1.0
