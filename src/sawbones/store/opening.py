"""Opening the database of a run folder: read-only, and only if it is one that a recorder made.

A database may come from a stranger: a link or a pipe in its place, views and triggers that compute,
tables that are something else. All of that is refused before anything of it is read.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

from sawbones.store.errors import RunNotFound, RunNotReadable
from sawbones.store.limits import MAX_FILE_BYTES, MAX_VALUE_BYTES
from sawbones.store.tables import SCHEMA_VERSION, TABLES, VIEWS


def find_runs(parent: Path) -> list[Path]:
    """Run folders below `parent`, oldest first."""
    if not parent.is_dir():
        return []
    found = [(p.parent, _modified(p)) for p in parent.glob("*/run.db")]
    return [folder for folder, _ in sorted(found, key=lambda item: (item[1], item[0]))]


def _modified(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def database_path(folder: Path, rank: int = 0) -> Path:
    return folder / (f"run-rank{rank}.db" if rank else "run.db")


@contextmanager
def connect(folder: Path, rank: int = 0) -> Iterator[sqlite3.Connection]:
    path = database_path(folder, rank)
    if not os.path.lexists(path):
        near = ", ".join(str(p) for p in find_runs(folder.parent)[-3:]) or "none"
        raise RunNotFound(
            f"no recorded run in {folder} (no {path.name}). Runs nearby: {near}. Record "
            "one: sawbones run train.py"
        )
    _check_files(path)
    try:
        db = _opened(path)
        try:
            _check_tables(path, db)
            yield db
        finally:
            db.close()
    except sqlite3.Error as error:
        raise RunNotReadable(f"{path} is not a readable run database ({error}).") from error


def _check_files(path: Path) -> None:
    for name in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(path.name + name)
        try:
            status = file.lstat()
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "no plain file"
            raise RunNotReadable(f"{file} is {kind}, so it is no recording. Nothing was read.")
        if status.st_size > MAX_FILE_BYTES:
            raise RunNotReadable(
                f"{file} has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} are read."
            )


def read_only(path: Path) -> str:
    """As SQLite wants it: `?`, `#` and `%` in a path are not part of the address."""
    return f"file:{quote(str(path.absolute()))}?mode=ro"


def _opened(path: Path) -> sqlite3.Connection:
    # A WAL database needs its -shm file: immutable mode serves folders where none can be made.
    address = read_only(path)
    db = sqlite3.connect(address, uri=True)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        db = sqlite3.connect(f"{address}&immutable=1", uri=True)
    except sqlite3.DatabaseError:
        db.close()
        raise
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    return db


@cache
def _expected() -> dict[str, tuple[str, str]]:
    db = sqlite3.connect(":memory:")
    db.executescript(TABLES + VIEWS)
    found = _schema(db)
    db.close()
    return found


def _schema(db: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    rows = db.execute("SELECT name, type, substr(sql, 1, 10000) FROM sqlite_master LIMIT 200")
    return {
        str(name): (str(kind), re.sub(r"\s+", " ", str(sql)))
        for name, kind, sql in rows
        if not (kind == "index" and sql is None)
    }


def _check_tables(path: Path, db: sqlite3.Connection) -> None:
    """Tables and views are those of tables.py, word for word. A recording by another version is
    told by its number first.
    """
    found, expected = _schema(db), _expected()
    if found.get("meta") == expected["meta"]:
        version = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        if version is not None and str(version[0]) != str(SCHEMA_VERSION):
            raise RunNotReadable(
                f"{path.parent} was recorded with schema {str(version[0])[:20]}; this Sawbones "
                f"reads schema {SCHEMA_VERSION}. Record it again: sawbones run SCRIPT"
            )
    for name, given in found.items():
        if expected.get(name) != given:
            raise RunNotReadable(
                f"{path} is not a readable run database: it has a {given[0]} {name[:60]!r} that "
                "no recorder makes. Nothing of it was read."
            )
    for name in expected:
        if name not in found:
            raise RunNotReadable(
                f"{path} is not a readable run database: it has no {name!r}. Record it again: "
                "sawbones run train.py"
            )
