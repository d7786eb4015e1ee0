"""A sick run with a NaN in it, a healthy one and a crash, as the other stages would hand them
over.
"""

from __future__ import annotations

import numpy as np
import pytest
from report_samples import SOURCE, sample_report, sample_run

from sawbones.schema import Cleared, CouldNotLook, Report, Run, Symptom


@pytest.fixture(scope="session")
def run() -> Run:
    return sample_run()


@pytest.fixture(scope="session")
def sick() -> Report:
    return sample_report()


@pytest.fixture(scope="session")
def sources() -> dict[str, str]:
    return {"train.py": SOURCE}


@pytest.fixture(scope="session")
def healthy() -> Report:
    return Report(
        verdict="healthy",
        script="train.py",
        steps=200,
        seconds=75.4,
        looked=(
            "data.labels-misaligned",
            "optimizer.lr-too-high",
            "loop.no-zero-grad",
            "loss.label-shift",
        ),
        could_not_look=(
            CouldNotLook("loop.clip-before-unscale", "this run has no GradScaler"),
            CouldNotLook("loop.amp-no-scaler", "this run has no GradScaler"),
            CouldNotLook("model.causal-leak", "needs an influence map; no token input was found"),
        ),
        environment={"torch": "2.13.0"},
    )


@pytest.fixture(scope="session")
def crashed() -> Report:
    return Report(verdict="crashed", script="train.py", steps=3, seconds=float(np.float64(1.5)))


@pytest.fixture(scope="session")
def unexplained() -> Report:
    return Report(
        verdict="unexplained",
        script="train.py",
        steps=128,
        seconds=20.0,
        symptoms=(
            Symptom(
                "does-not-learn", "ill", "the loss ends at 1.374", 1.374, 0.9, tuple(range(128))
            ),
            Symptom("spikes", "notable", "the loss jumps at step 40", float("nan"), None, (40,)),
        ),
        cleared=(Cleared("optimizer", "a tenth of the learning rate", "nothing changed"),),
    )


@pytest.fixture(scope="session")
def inconclusive() -> Report:
    return Report(
        verdict="inconclusive",
        script="train.py",
        steps=0,
        seconds=4.0,
        notes=("no optimizer step was seen",),
    )
