from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from lab_recordings import Recordings, shared_folder

from sawbones.lab.ward import beds

# The faults that every test run takes through the contract. SAWBONES_FULL=1 takes the whole lab.
FIRST = (
    "data.labels-misaligned", "optimizer.lr-too-high", "loop.no-zero-grad", "loss.reduction-sum", "loop.amp-no-scaler",
    "model.mask-polarity", "model.causal-leak", "loss.label-shift", "loss.pad-not-ignored", "loop.clip-before-unscale",
    "model.position-broadcast", "optimizer.decay-on-norm-bias", "loop.nondeterminism", "loss.double-softmax",
)  # fmt: skip


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recordings]:
    whole = bool(os.environ.get("SAWBONES_FULL"))
    chosen = [bed for bed in beds() if whole or bed.fault in FIRST]
    threads = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(dict.fromkeys(threads, "1"))
    made = Recordings(shared_folder(tmp_path_factory.getbasetemp()), chosen)
    yield made
    made.close()
    for name, value in threads.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
