"""A later stretch of a series that wanders spreads less than the whole of it did; its windows
spread as ever.
"""

from __future__ import annotations

import pytest
import torch

from sawbones.faults.evaluation.preprocessing_mismatch.check import check
from sawbones.observe.signals.evaluations import EvaluationLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run
from sawbones.schema.evaluation import Evaluation
from sawbones.store.codec import from_plain, to_plain

SPAN = 24


def windows() -> tuple[list[torch.Tensor], torch.Tensor]:
    """Shuffled batches of the first part, and all of the rest."""
    drawn = torch.Generator().manual_seed(3)
    level = torch.cat([torch.linspace(-2, 2, 1200), torch.full((300,), 1.5)])
    series = level + 0.2 * torch.randn(1500, generator=drawn)
    rows = series.unfold(0, SPAN, 1)
    order = torch.randperm(1150, generator=drawn)
    return [rows[part] for part in order.split(64)], rows[1200:]


@pytest.mark.parametrize("factor", [1.0, 0.2])
def test_a_narrow_stretch_is_no_mismatch_but_other_units_are(factor: float) -> None:
    trained, held = windows()
    log = EvaluationLog(SiteFinder())
    for step, batch in enumerate(trained):
        log.called("train", step, (batch,), None)
    log.called("eval", len(trained), (held * factor,), None)
    seen = from_plain(Evaluation, to_plain(log.record))
    run = Run("train.py", (), "", {}, Ending("finished"), evaluation=seen)
    assert len(list(check(run))) == (factor < 1)
