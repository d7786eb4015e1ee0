"""One seed for every stream of randomness, and the state of all of them for a checkpoint."""

from __future__ import annotations

import hashlib
import os
import random
from typing import Any

import numpy as np
import torch


def derive_seed(seed: int, *names: object) -> int:
    """An independent seed per purpose: `seed + rank` would give rank 1 of seed 0 the stream of rank
    0 of seed 1.
    """
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_everything(seed: int, rank: int = 0) -> None:
    """Python, NumPy, torch and every CUDA device, with a stream of its own per rank (dropout must
    differ there).
    """
    own = derive_seed(seed, "rank", rank)
    random.seed(own)
    np.random.seed(own % 2**32)
    torch.manual_seed(own)


def seed_worker(worker_id: int) -> None:
    """torch seeds itself in a data worker; Python's and NumPy's generators would repeat the
    parent's.
    """
    own = torch.initial_seed()
    random.seed(own)
    np.random.seed(own % 2**32)


def use_deterministic_kernels(on: bool) -> None:
    """Refuse kernels whose result depends on timing. cuBLAS reads its variable when its handle is
    made: call early.
    """
    if on:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
    if (
        on != torch.are_deterministic_algorithms_enabled()
    ):  # the call itself loads the compiler: over a second
        torch.use_deterministic_algorithms(on)


def capture_rng(device: torch.device) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """All generator states, as tensors and as JSON."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    tensors = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys, dtype=np.int64)),
    }
    if device.type == "cuda":
        tensors["cuda"] = torch.cuda.get_rng_state(device)
    record = {
        "python": [version, list(words), gauss],
        "numpy": [str(name), int(position), int(has_gauss), float(cached)],
    }
    return tensors, record


def restore_rng(
    tensors: dict[str, torch.Tensor], record: dict[str, Any], device: torch.device
) -> None:
    version, words, gauss = record["python"]
    random.setstate((version, tuple(words), gauss))
    name, position, has_gauss, cached = record["numpy"]
    np.random.set_state(
        (name, tensors["numpy"].numpy().astype(np.uint32), position, has_gauss, cached)
    )
    torch.set_rng_state(tensors["torch"].to(torch.uint8))
    if device.type == "cuda" and "cuda" in tensors:
        torch.cuda.set_rng_state(tensors["cuda"].to(torch.uint8), device)
