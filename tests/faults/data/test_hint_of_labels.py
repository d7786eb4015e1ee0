"""Labels beside the wrong inputs give no hint of them; a hard task may give a weak one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sawbones.faults.data.labels_misaligned.check import check
from sawbones.schema import Ending, Run


def probe(z: float) -> dict[str, Any]:
    return {
        "kind": "classes",
        "num": 600,
        "score": 0.507 + 0.024 * z,
        "chance": 0.507,
        "spread": 0.024,
        "z": z,
    }


@pytest.mark.parametrize(
    ("trained", "stored", "found"),
    [(0.3, None, 1), (2.3, None, 0), (3.1, 0.4, 1), (0.3, 22.0, 1), (2.6, 2.9, 0), (5.0, None, 0)],
)
def test_only_pairs_without_any_hint_are_blamed(
    trained: float, stored: float | None, found: int
) -> None:
    steps = {"step": np.arange(120.0), "loss": np.full(120, 0.693), "lr": np.full(120, 1e-3)}
    facts = {
        "label_probe": {
            "batches": probe(trained),
            "dataset": probe(stored) if stored is not None else None,
            "maps": None,
        }
    }
    run = Run("train.py", (), "", {}, Ending("finished"), steps=steps, facts=facts)
    assert len(list(check(run))) == found
