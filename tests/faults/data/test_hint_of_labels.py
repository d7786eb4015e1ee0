"""Labels beside the wrong inputs give no hint of them; a hard task may give a weak one."""

from __future__ import annotations

import numpy as np
import pytest

from sawbones.faults.data.labels_misaligned.check import check
from sawbones.schema import Ending, Run
from sawbones.schema.labels import LabelProbe, LabelsTold


def probe(z: float) -> LabelsTold:
    return LabelsTold("classes", 600, 0.507 + 0.024 * z, 0.507, 0.024, z)


@pytest.mark.parametrize(
    ("trained", "stored", "found"),
    [(0.3, None, 1), (2.3, None, 0), (3.1, 0.4, 1), (0.3, 22.0, 1), (2.6, 2.9, 0), (5.0, None, 0)],
)
def test_only_pairs_without_any_hint_are_blamed(
    trained: float, stored: float | None, found: int
) -> None:
    steps = {"step": np.arange(120.0), "loss": np.full(120, 0.693), "lr": np.full(120, 1e-3)}
    found_in_set = probe(stored) if stored is not None else None
    both = LabelProbe(probe(trained), found_in_set)
    run = Run("train.py", (), "", {}, Ending("finished"), steps=steps, label_probe=both)
    assert len(list(check(run))) == found
