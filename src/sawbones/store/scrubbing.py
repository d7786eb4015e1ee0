"""Masking what an older recording holds in clear."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sawbones.masking import Masker
from sawbones.store.errors import RunNotFound
from sawbones.store.limits import Allowance
from sawbones.store.opening import connect, database_path

_TEXT_FILES = ("sawbones.log", "stacks-rank*.txt", "*.json", "*.ring")
_COLUMNS = {
    "meta": ("key", ("value",)),
    "sites": ("id", ("file", "function", "code")),
    "raw_events": ("seq", ("phase", "data")),
    "raw_batches": ("id", ("phase", "source", "data")),
}


def scrub_recording(folder: Path, masker: Masker) -> list[Path]:
    """Masks databases, log and positions of a run folder; returns the files that changed."""
    ranks = _ranks(folder)
    for rank in ranks:
        _learn(folder, rank, masker)
    changed = [path for rank in ranks if (path := _scrub_database(folder, rank, masker))]
    for pattern in _TEXT_FILES:
        for path in sorted(folder.glob(pattern)):
            if stat.S_ISREG(path.lstat().st_mode) and _scrub_text(path, masker):
                changed.append(path)
    return changed


def _ranks(folder: Path) -> list[int]:
    names = [p.stem.removeprefix("run-rank") for p in folder.glob("run-rank*.db")]
    others = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    first = [0] if os.path.lexists(database_path(folder)) else []
    if not first and not others:
        raise RunNotFound(
            f"no recorded run in {folder} (no run.db). List recorded runs: sawbones runs"
        )
    return [*first, *others]


def _learn(folder: Path, rank: int, masker: Masker) -> None:
    with connect(folder, rank) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'argv'").fetchone()
    try:
        argv = json.loads(row[0]) if row is not None else []
    except (ValueError, TypeError, RecursionError):
        argv = []
    if isinstance(argv, list):
        masker.learn_arguments([str(argument) for argument in argv])


def _scrub_database(folder: Path, rank: int, masker: Masker) -> Path | None:
    path = database_path(folder, rank)
    allowance = Allowance(str(path), path.stat().st_size)
    with connect(folder, rank) as db:  # it is checked there
        changes = list(_changes(db, allowance, masker))
    if not changes:
        return None
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        for statement, values in changes:
            db.execute(statement, values)
        db.execute("COMMIT")
        # What was overwritten still lies in the log and in free pages.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _changes(
    db: sqlite3.Connection, allowance: Allowance, masker: Masker
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for table, (key, columns) in _COLUMNS.items():
        for row in db.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}"):
            for column, value in zip(columns, row[1:], strict=True):
                masked = _masked(table, row[0], value, masker)
                if masked != value:
                    yield f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (masked, row[0])
    for kind, number, data in db.execute("SELECT kind, id, data FROM records"):
        text = json.dumps(allowance.unpacked(data), separators=(",", ":"))
        masked = masker.mask_json(text)
        if masked != text:
            packed = zlib.compress(masked.encode(), 3)
            statement = "UPDATE records SET data = ? WHERE kind = ? AND id = ?"
            yield statement, (packed, kind, number)


def _masked(table: str, key: Any, value: Any, masker: Masker) -> Any:
    if not isinstance(value, str):
        return value
    if table == "meta" and key == "argv":
        try:
            argv = [str(argument) for argument in json.loads(value)]
        except (ValueError, TypeError, RecursionError):
            return masker.mask(value)
        masked = masker.mask_arguments(argv)
        return json.dumps(masked, separators=(",", ":")) if masked != argv else value
    is_json = table == "meta" or value[:1] in "{["
    return masker.mask_json(value) if is_json else masker.mask(value)


def _scrub_text(path: Path, masker: Masker) -> bool:
    """In place: a ring of fixed slots keeps its size."""
    content = path.read_bytes()
    masked = masker.mask_bytes(content)
    if masked == content:
        return False
    if path.suffix == ".ring":
        masked = masked[: len(content)].ljust(len(content), b"\0")
    with path.open("r+b") as file:
        file.write(masked)
        file.truncate()
    return True
