"""Checkpoints: one safetensors file with every tensor and the state as JSON in its header, and a
record beside it.

    step-000250.safetensors   model, optimizer, generators, tokenizer, configuration, positions:
    what resuming needs step-000250.json          its SHA-256 and the provenance (arguments, commit,
    versions, time); written last last.json, best.json      which step is which

Nothing that changes from run to run (time, paths) is in the safetensors file, so equal runs give
equal hashes. Nothing is unpickled on load.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as dump_tensors

from .errors import CheckpointError

FORMAT = 1
_STEP_FILE = re.compile(r"step-(\d{6,})\.safetensors")


@dataclass(frozen=True)
class SavedCheckpoint:
    path: Path
    sha256: str


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    sha256: str
    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]
    provenance: dict[str, Any]

    def part(self, name: str) -> dict[str, torch.Tensor]:
        prefix = name + "/"
        return {
            key.removeprefix(prefix): tensor
            for key, tensor in self.tensors.items()
            if key.startswith(prefix)
        }


def write_atomically(path: Path, data: bytes) -> None:
    """Either the old content or the whole new one, also after a power cut: write beside, flush to
    disk, rename.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself lives in the folder
    finally:
        os.close(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, indent=1).encode() + b"\n"


def _own_digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(
        _json({k: v for k, v in record.items() if k != "record_sha256"})
    ).hexdigest()


def save(
    folder: Path,
    step: int,
    tensors: dict[str, torch.Tensor],
    state: dict[str, Any],
    provenance: dict[str, Any],
) -> SavedCheckpoint:
    path = folder / f"step-{step:06d}.safetensors"
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = dump_tensors(plain, {"state": json.dumps(state, sort_keys=True)})
    digest = hashlib.sha256(data).hexdigest()
    record: dict[str, Any] = {
        "format": FORMAT,
        "step": step,
        "sha256": digest,
        "bytes": len(data),
        "provenance": provenance,
    }
    record["record_sha256"] = _own_digest(record)
    write_atomically(path, data)
    write_atomically(path.with_suffix(".json"), _json(record))
    return SavedCheckpoint(path, digest)


def point(folder: Path, name: str, saved: SavedCheckpoint, **more: Any) -> None:
    """Let `last` or `best` mean this checkpoint."""
    write_atomically(
        folder / f"{name}.json",
        _json({"checkpoint": saved.path.name, "sha256": saved.sha256, **more}),
    )


def _pointed(folder: Path, name: str) -> Path | None:
    try:
        return folder / str(json.loads((folder / f"{name}.json").read_bytes())["checkpoint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def prune(folder: Path, keep: int) -> None:
    """Keep the newest ones and the best."""
    best = _pointed(folder, "best")
    for path in list_steps(folder)[:-keep]:
        if path != best:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)


def list_steps(folder: Path) -> list[Path]:
    """Checkpoint files in the folder, oldest step first."""
    found = [
        (int(m.group(1)), p)
        for p in folder.glob("step-*.safetensors")
        if (m := _STEP_FILE.fullmatch(p.name))
    ]
    return [path for _, path in sorted(found)]


def locate(path: Path) -> Path:
    """A checkpoint file, or the last one of a run folder."""
    if path.is_file():
        return path
    if path.is_dir():
        steps = list_steps(path)
        last = _pointed(path, "last") or (steps[-1] if steps else None)
        if last is None:
            raise CheckpointError(
                f"no checkpoint in {path} (no step-*.safetensors). Start one: sawbones "
                f"train --out {path}"
            )
        return last
    nearby = sorted(str(p) for p in list_steps(path.parent)) if path.parent.is_dir() else []
    hint = f" Checkpoints nearby: {', '.join(nearby[-3:])}" if nearby else ""
    raise CheckpointError(f"no checkpoint at {path}.{hint}")


def load(path: Path) -> Checkpoint:
    """Verify, then parse. A bad file raises CheckpointError that names the newest good one beside
    it.
    """
    path = locate(path)
    try:
        return _load_verified(path)
    except CheckpointError as error:
        good = previous_good(path)
        offer = (
            f"Previous good checkpoint: --resume {good}"
            if good
            else "No good checkpoint is left in that folder"
        )
        raise CheckpointError(f"{error}. Nothing was loaded. {offer}") from error


def previous_good(path: Path) -> Path | None:
    for candidate in reversed(list_steps(path.parent)):
        if candidate == path:
            continue
        try:
            verify(candidate)
        except CheckpointError:
            continue
        return candidate
    return None


def verify(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The file's bytes and its record, when both are what was written."""
    try:
        record = json.loads(path.with_suffix(".json").read_bytes())
        sound = isinstance(record, dict) and record["record_sha256"] == _own_digest(record)
        expected, size, version = (
            (str(record["sha256"]), int(record["bytes"]), record["format"]) if sound else ("", 0, 0)
        )
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} has no record {path.stem}.json beside it, so it cannot be verified"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise CheckpointError(f"{path.with_suffix('.json')} is truncated or was altered")
    if version != FORMAT:
        raise CheckpointError(f"{path} has format {version}; this version reads format {FORMAT}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from None
    if len(data) < size:
        raise CheckpointError(f"{path} is truncated: {len(data)} bytes of {size}")
    digest = hashlib.sha256(data).hexdigest()
    if digest != expected:
        raise CheckpointError(
            f"{path} was altered: its SHA-256 is {digest[:12]}…, its record says {expected[:12]}…"
        )
    return data, record


def _load_verified(path: Path) -> Checkpoint:
    data, record = verify(path)
    (header_size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + header_size])
    state = json.loads(header["__metadata__"]["state"])
    return Checkpoint(path, record["sha256"], parse_tensors(data), state, record["provenance"])


def pack_optimizer(
    optimizer: torch.optim.Optimizer,
) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    """(tensors by `index/name`, parameter groups as JSON)."""
    packed = optimizer.state_dict()
    tensors = {
        f"{i}/{key}": value for i, entry in packed["state"].items() for key, value in entry.items()
    }
    return tensors, packed["param_groups"]


def unpack_optimizer(
    optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], groups: list[dict[str, Any]]
) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition("/")
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": groups})
