"""SQL over a run: reading only, with the packed statistics unpacked when a query asks for them.

The database may come from a stranger and the query from a shell history: SQLite is allowed to read
tables and to compute, for a limited time, and nothing else.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sawbones.schema import NO_GRADIENT, NOT_MEASURED, TENSOR_STATISTICS
from sawbones.schema.errors import SawbonesError
from sawbones.store.opening import connect
from sawbones.store.reader import read_run

MAX_ROWS = 1_000_000
MAX_SECONDS = 60.0
MAX_RESULT_BYTES = 256 << 20
MAX_VALUE_BYTES = 16 << 20
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_PRAGMAS = {"table_info", "table_xinfo", "table_list"}
# They reach out of the database where a build of SQLite has them.
_REFUSED_FUNCTIONS = {
    *("load_extension", "readfile", "writefile", "edit", "fsdir", "lsmode", "fts3_tokenizer"),
    *("sqlite_dbpage", "shell_add_schema", "eval"),
}


class QueryFailed(SawbonesError):
    """SQL that SQLite would not run, or that is not allowed here."""


def query(folder: str | Path, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connect(Path(folder)) as db:
        if "tensors" in sql.lower():
            _unpack(db, folder)
        ends = time.monotonic() + MAX_SECONDS
        refused: list[str] = []
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        db.set_authorizer(lambda *asked: _authorized(refused, *asked))
        db.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
        try:
            cursor = db.execute(sql)
            names = [d[0] for d in cursor.description or ()]
            return names, _fetched(cursor)
        except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
            if refused:
                why = f"a query may only read, not {refused[0]}"
            elif time.monotonic() > ends:
                why = f"stopped after {MAX_SECONDS:g} s"
            else:
                why = str(error) or type(error).__name__
            raise QueryFailed(
                f"{why}, in: {sql[:200]}. Views: steps, events, tensors, batches (sawbones query "
                "--help)"
            ) from error
        finally:
            db.set_authorizer(None)
            db.set_progress_handler(None, 0)


def _authorized(refused: list[str], action: int, *asked: str | None) -> int:
    name = (asked[1] or "").lower() if len(asked) > 1 else ""
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and name not in _REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and (asked[0] or "").lower() in _PRAGMAS:
        return sqlite3.SQLITE_OK
    refused.append(_ACTIONS.get(action, "change anything"))
    return sqlite3.SQLITE_DENY


_ACTIONS = {
    sqlite3.SQLITE_ATTACH: "ATTACH another file (VACUUM INTO does that too)",
    sqlite3.SQLITE_DETACH: "DETACH a file",
    sqlite3.SQLITE_PRAGMA: "set a PRAGMA",
    sqlite3.SQLITE_FUNCTION: "call a function that reaches out of the database",
}


def _fetched(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        size += sum(len(v) for v in row if isinstance(v, (str, bytes)))
        if len(rows) >= MAX_ROWS or size > MAX_RESULT_BYTES:
            raise ValueError(
                f"the answer is larger than {MAX_ROWS:,} rows or {MAX_RESULT_BYTES >> 20} MB; "
                "add a limit"
            )
        rows.append(row)
    return rows


def _unpack(db: sqlite3.Connection, folder: str | Path) -> None:
    run = read_run(folder)
    columns = ", ".join(f"{name} REAL" for name in TENSOR_STATISTICS)
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(f"CREATE TEMP TABLE tensors(step INTEGER, tensor INTEGER, name TEXT, {columns})")
    names = {t.index: t.name for t in run.tensors}
    marks = ",".join("?" * (3 + len(TENSOR_STATISTICS)))
    for i, step in enumerate(run.tensor_steps.tolist()):
        rows = []
        for tensor in range(run.statistics["grad_l2"].shape[1]):
            values = [float(run.statistics[name][i, tensor]) for name in TENSOR_STATISTICS]
            if all(v in (NOT_MEASURED,) for v in values):
                continue
            rows.append((step, tensor, names.get(tensor, ""), *(_shown(v) for v in values)))
        db.executemany(f"INSERT INTO tensors VALUES({marks})", rows)


def _shown(value: float) -> Any:
    if value in (NOT_MEASURED, NO_GRADIENT):
        return None
    return value if value - value == 0.0 else str(value)
