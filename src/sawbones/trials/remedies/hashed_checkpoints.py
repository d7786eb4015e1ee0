"""What the script saves, as hashes: one for every tensor and setting of every checkpoint, in a file
beside the recording. Nothing about the script changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

FILE = "checkpoints.json"
DEEPEST = 12  # levels of a checkpoint that are looked into


def install(recorder: Any) -> None:
    kept: list[dict[str, Any]] = []

    def keep(obj: Any, place: Any) -> None:
        name = place if isinstance(place, (str, os.PathLike)) else getattr(place, "name", "")
        parts = {path: hashlib.sha256(raw).hexdigest()[:16] for path, raw in parts_of(obj)}
        kept.append({"file": os.path.basename(str(name)), "step": recorder.step, "parts": parts})
        (Path(recorder.folder) / FILE).write_text(json.dumps(kept), encoding="utf-8")

    real_save = torch.save

    def save(obj: Any, f: Any, *args: Any, **settings: Any) -> Any:
        result = real_save(obj, f, *args, **settings)
        recorder.guard("checkpoint hash", keep, obj, f)
        return result

    torch.save = save
    import safetensors.torch

    real_file = safetensors.torch.save_file

    def save_file(tensors: Any, filename: Any, *args: Any, **settings: Any) -> Any:
        result = real_file(tensors, filename, *args, **settings)
        recorder.guard("checkpoint hash", keep, tensors, filename)
        return result

    safetensors.torch.save_file = save_file


def parts_of(thing: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of every value; of an object that is neither a tensor, a container nor a plain
    value, only its type: its bytes may hold addresses.
    """
    if isinstance(thing, nn.Module):
        thing = thing.state_dict()
    if isinstance(thing, torch.Tensor):
        told = f"{thing.dtype} {tuple(thing.shape)}".encode()
        flat = thing.detach().cpu().contiguous().reshape(-1)
        yield path, told + flat.view(torch.uint8).numpy().tobytes()
    elif isinstance(thing, Mapping) and depth < DEEPEST:
        for key, value in thing.items():
            yield from parts_of(value, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(thing, (list, tuple)) and depth < DEEPEST:
        for index, value in enumerate(thing):
            yield from parts_of(value, f"{path}[{index}]", depth + 1)
    elif thing is None or isinstance(thing, (bool, int, float, str, bytes)):
        yield path, repr(thing).encode()
    else:
        yield path, type(thing).__qualname__.encode()
