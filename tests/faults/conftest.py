from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from lab_recordings import FIRST, Recordings, shared_folder

from sawbones.lab.ward import beds


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recordings]:
    whole = bool(os.environ.get("SAWBONES_FULL"))
    here = {"cpu", "cuda"} if torch.cuda.is_available() else {"cpu"}
    chosen = [b for b in beds() if b.device in here and (whole or b.fault in FIRST)]
    threads = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(dict.fromkeys(threads, "1"))
    made = Recordings(shared_folder(tmp_path_factory.getbasetemp()), chosen)
    yield made
    made.close()
    for name, value in threads.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
