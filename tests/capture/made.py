"""Bundles for tests, written by hand."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sawbones.capture import container
from sawbones.capture import tensors as codec
from sawbones.capture.bundle import read_bundle
from sawbones.capture.container import Writer
from sawbones.capture.errors import CaptureError
from sawbones.capture.packing import Packer


def write_small_bundle(path: Path, **changes: Any) -> Path:
    packer = Packer()
    weights = {"weight": torch.randn(2, 3), "mask": torch.tensor([True, False])}
    state = {
        "arrivals": packer.pack(
            [
                {
                    "step": 3,
                    "values": {"x": torch.arange(6).reshape(2, 3), "y": (torch.ones(2), None)},
                }
            ]
        ),
        "snapshot": packer.pack({"step": 3, "models": [{"tensors": weights}]}),
    }
    writer = Writer(path)
    writer.stream("tensors.safetensors", lambda put: codec.write(packer.tensors, put))
    writer.add_json("state.json", state)
    writer.add_json(
        "steps.json", [{"step": 2, "loss": 0.5}, {"step": 3, "loss": {"$float": "nan"}}]
    )
    writer.add_json(
        "environment.json",
        {"script": "train.py", "argv": ["--steps", "5"], "torch": torch.__version__},
    )
    writer.add("source/train.py", b"import torch\n")
    manifest = {
        "format": 1,
        "sawbones": "0.1.0",
        "step": 3,
        "rank": 0,
        "world_size": 1,
        "failure": {
            "kind": "nonfinite loss",
            "text": "loss nan at step 3",
            "loss": {"$float": "nan"},
        },
    }
    return writer.close({**manifest, **changes})


def forge(
    source: Path,
    target: Path,
    change: Callable[[dict[str, bytes]], None],
    edit: Callable[[zipfile.ZipInfo], None] = id,
) -> Path:
    with zipfile.ZipFile(source) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    manifest = json.loads(parts.pop("manifest.json"))
    manifest["parts"] = {
        name: {"sha256": hashlib.sha256(c).hexdigest(), "size": len(c)} for name, c in parts.items()
    }
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            entry = zipfile.ZipInfo(name)
            edit(entry)
            archive.writestr(entry, content)
        archive.comment = container._SEAL + b"0" * 64
    container.seal(target)
    return target


def fuzz(bundle: Path, folder: Path, count: int, seed: int) -> tuple[int, int]:
    """Random damage: of the file, of the file and sealed again, of one part with a manifest to
    match.

    Returns how many were read or refused with a clear error, and how many of them refused; any
    other error is raised.
    """
    content, rng = bundle.read_bytes(), random.Random(seed)
    clean = refused = 0
    for number in range(count):
        target = folder / "mutated.sawbones"
        if number % 3 == 2:

            def damage(parts: dict[str, bytes]) -> None:
                name = rng.choice(sorted(parts))
                if name != "manifest.json":
                    parts[name] = mutated(parts[name], rng)

            forge(bundle, target, damage)
        else:
            target.write_bytes(mutated(content, rng))
            if number % 3 and target.stat().st_size > 64:
                container.seal(target)
        try:
            found = read_bundle(target)
            found.sources(), found.batches(), found.weights()
        except CaptureError as error:
            assert str(error)
            refused += 1
        clean += 1
    return clean, refused


def mutated(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at] = rng.randrange(256)
        elif kind == 2:
            del changed[at : at + rng.randrange(1, 50)]
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.randrange(1, 50))
        else:
            other = rng.randrange(len(changed))
            changed[at : at + 20] = changed[other : other + 20]
        if len(changed) < 2:
            break
    return bytes(changed)
