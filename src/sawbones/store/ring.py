"""The last collectives of a rank, in a small mapped file: they are on record even when the process
is aborted in the next instant.

Events reach the disk a few times a second; a mismatch between ranks makes gloo abort the process
before that.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sawbones.masking import mask
from sawbones.schema import Site
from sawbones.schema.ranks import Collective
from sawbones.store.private import make_private_file

SLOTS = 32
SLOT_BYTES = 512


def ring_path(folder: Path, rank: int) -> Path:
    return folder / f"collectives-rank{rank}.ring"


def stacks_path(folder: Path, rank: int) -> Path:
    """Where an abort leaves the stacks of all threads; empty while there was none."""
    return folder / f"stacks-rank{rank}.txt"


class Ring:
    def __init__(self, folder: Path, rank: int) -> None:
        path = ring_path(folder, rank)
        make_private_file(path).write_bytes(bytes(SLOTS * SLOT_BYTES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SLOTS * SLOT_BYTES)

    def write(
        self,
        number: int,
        op: str,
        shape: Any,
        step: int,
        site: Site | None,
        callers: Sequence[Any] = (),
    ) -> None:
        place = (
            [site.file, site.line, site.function, mask(site.code)[:100]]
            if site is not None
            else None
        )
        kept = list(callers)
        while (
            len(text := json.dumps([number, op, shape, step, place, kept]).encode()) > SLOT_BYTES
            and kept
        ):
            kept.pop()  # long paths: the nearest callers matter most
        start = number % SLOTS * SLOT_BYTES
        self._map[start : start + SLOT_BYTES] = text[:SLOT_BYTES].ljust(SLOT_BYTES, b"\0")


def read_ring(folder: Path, rank: int) -> tuple[Collective, ...]:
    """In the order they were made; empty when there is none."""
    try:
        path = ring_path(folder, rank)
        if not path.is_file():
            return ()
        with path.open("rb") as file:
            data = file.read(SLOTS * SLOT_BYTES)
    except OSError:
        return ()
    found = []
    for start in range(0, len(data), SLOT_BYTES):
        text = data[start : start + SLOT_BYTES].rstrip(b"\0")
        try:
            number, op, shape, step, place, *callers = json.loads(text)
            if type(number) is int:
                around = tuple(_site(row) for row in (callers[0] if callers else ()))
                site = _site(place) if place else None
                found.append(
                    Collective(number, str(op), tuple(shape or ()), int(step), site, around)
                )
        except (ValueError, TypeError, RecursionError):
            continue  # cut off in the middle
    return tuple(sorted(found, key=lambda row: row.number))


def _site(row: Any) -> Site:
    file, line, function, code = row
    return Site(str(file), int(line), str(function), str(code))
