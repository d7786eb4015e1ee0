"""SQL over a run: read-only, with the packed statistics unpacked when a query asks for them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sawbones.schema import NO_GRADIENT, NOT_MEASURED, TENSOR_STATISTICS
from sawbones.schema.errors import SawbonesError
from sawbones.store.reader import connect, read_run


class QueryFailed(SawbonesError):
    """SQL that SQLite would not run."""


def query(folder: str | Path, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connect(Path(folder)) as disk:
        memory = sqlite3.connect(":memory:")
        try:
            disk.backup(memory)
            if "tensors" in sql.lower():
                _unpack(memory, folder)
            cursor = memory.execute(sql)
            names = [d[0] for d in cursor.description or ()]
            return names, cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise QueryFailed(
                f"{error} in: {sql}. Views: steps, events, tensors, batches (sawbones query --help)"
            ) from error
        finally:
            memory.close()


def _unpack(db: sqlite3.Connection, folder: str | Path) -> None:
    run = read_run(folder)
    columns = ", ".join(f"{name} REAL" for name in TENSOR_STATISTICS)
    db.execute(f"CREATE TABLE tensors(step INTEGER, tensor INTEGER, name TEXT, {columns})")
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
