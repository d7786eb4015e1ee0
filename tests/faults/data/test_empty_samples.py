"""Empty samples that differ in nothing but their label, and pairs that must not answer for
themselves.
"""

from __future__ import annotations

import pytest
import torch

from sawbones.faults.data.degenerate_samples import check as degenerate_samples
from sawbones.observe.signals.label_probe import PairLog
from sawbones.schema import Batch, Ending, Run
from sawbones.schema.samples import IdCounts, Samples, TokenRows


def run_of(
    empty_rows: int, repeated: tuple[int, ...], rows: int = 400, source: str = "loader:0"
) -> Run:
    """One epoch in which some fingerprints come again and `empty_rows` rows hold nothing."""
    prints = [number for number, times in enumerate(repeated) for _ in range(times)]
    prints += range(1000, 1000 + rows - len(prints))
    batches = tuple(
        Batch(k, 0, "train", source, 0.0, (), tuple(prints[k::10]), 0) for k in range(10)
    )
    starts = IdCounts({-1: empty_rows, 7: rows - empty_rows}, rows)
    samples = Samples(rows=TokenRows(starts=starts))
    return Run("train.py", (), "", {}, Ending("finished"), batches=batches, samples=samples)


def test_one_empty_sample_for_each_label_is_named() -> None:
    (finding,) = degenerate_samples.check(run_of(90, (30, 28, 32)))
    assert finding.status == "likely"
    assert "empty" in finding.title


@pytest.mark.parametrize(
    ("empty_rows", "repeated", "source"),
    [
        (90, (), "loader:0"),  # samples hold more than the row: no two are alike
        (12, (4, 4, 4), "loader:0"),  # too few to matter
        (30, (30, 28, 32), "loader:0"),  # rare samples drawn often: they are not the empty ones
        (90, (30, 28, 32), "model"),  # labels are not among what the model is given
    ],
)
def test_other_repetition_stays_silent(
    empty_rows: int, repeated: tuple[int, ...], source: str
) -> None:
    assert list(degenerate_samples.check(run_of(empty_rows, repeated, source=source))) == []


def test_samples_of_earlier_epochs_say_nothing_about_their_labels() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(120, 10), torch.randint(0, 4, (120,))
    log = PairLog()
    for _ in range(4):
        log.add(inputs, labels)
    found = log.probe()
    assert found is not None
    assert found.num == 120
    assert found.z < 4.0
