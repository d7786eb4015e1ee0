"""W&B: the history of an offline run.

The file is a log as LevelDB writes them, behind a header of seven bytes: blocks of 32 kB with parts
of records, each with checksum, length and kind. The records are messages of W&B's own package,
which has no reader of the file any more.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sawbones.integrations.logs import LogNotReadable
from sawbones.schema.curve import Log, curve

FILES = "run-*.wandb"
MARK = b":W&B"
BLOCK, HEADER = 32768, 7
WHOLE, FIRST, LAST = 1, 2, 4  # kinds of parts; 3 is one in the middle


def read(path: Path) -> Log:
    file = _file(path)
    found: dict[str, list[tuple[int, float]]] = {}
    for record in records(file):
        if record.WhichOneof("record_type") == "history":
            _take(record.history, found)
    return Log(str(file), tuple(curve(name, points) for name, points in found.items()))


def records(file: Path) -> Iterator[Any]:
    """The messages of the file, up to where it ends: a run that was killed ends in the middle."""
    try:
        from wandb.proto import wandb_internal_pb2
    except ImportError:
        raise LogNotReadable("wandb is missing: pip install wandb") from None
    raw = file.read_bytes()
    if not raw.startswith(MARK):
        raise LogNotReadable(f"{file} is no file of W&B: it does not begin with {MARK.decode()}")
    for payload in _payloads(raw):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(payload)
        yield record


def _payloads(raw: bytes) -> Iterator[bytes]:
    at, parts = HEADER, b""
    while at + HEADER <= len(raw):
        left = BLOCK - at % BLOCK
        if left < HEADER:  # too little for a header: filled up
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", raw, at)
        part = raw[at + HEADER : at + HEADER + length]
        if len(part) < length or not kind:
            return
        at += HEADER + length
        parts = part if kind in (WHOLE, FIRST) else parts + part
        if kind in (WHOLE, LAST):
            yield parts


def _file(path: Path) -> Path:
    if path.is_file():
        return path
    files = sorted(path.rglob(FILES))
    if len(files) != 1:
        listed = f" There are: {', '.join(map(str, files[:5]))}" if files else ""
        raise LogNotReadable(f"{path} holds no offline run of W&B, or several.{listed}")
    return files[0]


def _take(history: Any, found: dict[str, list[tuple[int, float]]]) -> None:
    row = {
        item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in history.item
    }
    step = int(row.get("_step", history.step.num))
    for name, value in row.items():
        number = _number(value)
        if number is not None and not name.startswith("_"):
            found.setdefault(name, []).append((step, number))


def _number(value: Any) -> float | None:
    """NaN and infinities are kept as their names."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return None
    return float(value)
