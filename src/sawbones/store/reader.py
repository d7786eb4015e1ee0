"""Run folder -> Run. Opens read-only, also while the run is still going or after it was killed."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.schema import (
    NOT_MEASURED,
    STEP_COLUMNS,
    TENSOR_STATISTICS,
    Batch,
    DeepStep,
    Ending,
    Event,
    Module,
    Optimizer,
    Run,
    Site,
    Tensor,
)
from sawbones.schema.errors import SawbonesError
from sawbones.store.codec import from_plain, revive
from sawbones.store.joined_shards import join_shards
from sawbones.store.ring import read_ring, stacks_path
from sawbones.store.tables import SCHEMA_VERSION

MAX_TENSOR_ROWS = 2000


class RunNotFound(SawbonesError):
    """No recorded run where one was expected."""


def find_runs(parent: Path) -> list[Path]:
    """Run folders below `parent`, oldest first."""
    if not parent.is_dir():
        return []
    return sorted(
        (p.parent for p in parent.glob("*/run.db")), key=lambda p: (p / "run.db").stat().st_mtime
    )


def read_only(path: Path) -> str:
    """As SQLite wants it: `?`, `#` and `%` in a path are not part of the address."""
    return f"{path.absolute().as_uri()}?mode=ro"


@contextmanager
def connect(folder: Path, rank: int = 0) -> Iterator[sqlite3.Connection]:
    path = folder / (f"run-rank{rank}.db" if rank else "run.db")
    if not path.exists():
        near = ", ".join(str(p) for p in find_runs(folder.parent)[-3:]) or "none"
        raise RunNotFound(
            f"no recorded run in {folder} (no {path.name}). Runs nearby: {near}. Record "
            "one: sawbones run train.py"
        )
    try:
        # A WAL database needs its -shm file: immutable mode serves folders where none can be made.
        db = sqlite3.connect(read_only(path), uri=True)
        db.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.OperationalError:
        db = sqlite3.connect(f"{read_only(path)}&immutable=1", uri=True)
    except sqlite3.DatabaseError as error:
        raise RunNotFound(
            f"{path} is not a readable run database ({error}). Record it again: sawbones "
            "run train.py"
        ) from error
    try:
        yield db
    finally:
        db.close()


def read_run(folder: str | Path) -> Run:
    folder = Path(folder)
    others = sorted(int(p.stem.removeprefix("run-rank")) for p in folder.glob("run-rank*.db"))
    # On a second machine there is no rank 0: the first rank of that machine stands in for it.
    first = others.pop(0) if others and not (folder / "run.db").exists() else 0
    run = _read_rank(folder, first)
    return (
        join_shards(replace(run, ranks=tuple(_read_rank(folder, rank) for rank in others)))
        if others
        else run
    )


def _read_rank(folder: Path, rank: int) -> Run:
    with connect(folder, rank) as db:
        meta = {k: revive(json.loads(v)) for k, v in db.execute("SELECT key, value FROM meta")}
        version = int(meta.get("schema_version", 0))
        if version != SCHEMA_VERSION:
            raise SawbonesError(
                f"{folder} was recorded with schema {version}; this Sawbones reads schema "
                f"{SCHEMA_VERSION}."
            )
        sites = {
            i: Site(f, n, fn, c)
            for i, f, n, fn, c in db.execute("SELECT id, file, line, function, code FROM sites")
        }
        tensors = tuple(_records(db, "tensor", Tensor))
        tensor_steps, statistics = _statistics(db, len(tensors))
        steps = _steps(db)
        ending_raw = next(iter(_records(db, "ending", Ending)), None)
        seconds = float(meta.get("seconds", 0.0)) or (
            float(steps["time"][-1]) if len(steps["time"]) else 0.0
        )
        return Run(
            script=meta.get("script", ""),
            argv=tuple(meta.get("argv", ())),
            folder=str(folder),
            environment=meta.get("environment", {}),
            ending=ending_raw or Ending("killed"),
            rank=int(meta.get("rank", rank)),
            world_size=int(meta.get("world_size", 1)),
            seconds=seconds,
            events=tuple(_events(db, sites, int(meta.get("rank", rank)))),
            steps=steps,
            tensors=tensors,
            tensor_steps=tensor_steps,
            statistics=statistics,
            optimizers=tuple(_records(db, "optimizer", Optimizer)),
            modules=tuple(_records(db, "module", Module)),
            batches=tuple(_batches(db)),
            deep=tuple(_records(db, "deep", DeepStep)),
            facts={
                **meta.get("facts", {}),
                **_one_off(db),
                **_last_calls(folder, int(meta.get("rank", rank))),
            },
            signals=meta.get("signals", {}),
        )


def _records(db: sqlite3.Connection, kind: str, cls: type[Any]) -> Iterator[Any]:
    for (data,) in db.execute("SELECT data FROM records WHERE kind = ? ORDER BY id", (kind,)):
        yield from_plain(cls, json.loads(zlib.decompress(data)))


def _one_off(db: sqlite3.Connection) -> dict[str, Any]:
    """Records that are written once and read as facts: the first non-finite operator, operations on
    data, the label probe.
    """
    kinds = (
        "nonfinite",
        "data_ops",
        "label_probe",
        "samples",
        "vocabularies",
        "redraw",
        "updates",
        "profile",
    )
    marks = ", ".join("?" * len(kinds))
    rows = db.execute(f"SELECT kind, data FROM records WHERE id = 0 AND kind IN ({marks})", kinds)
    return {kind: revive(json.loads(zlib.decompress(data))) for kind, data in rows}


def _last_calls(folder: Path, rank: int) -> dict[str, Any]:
    calls = read_ring(folder, rank)
    stacks = stacks_path(folder, rank)
    aborted = (
        {"aborted": stacks.read_text(encoding="utf-8", errors="replace")[:4000]}
        if _is_filled(stacks)
        else {}
    )
    return {**({"last_collectives": calls} if calls else {}), **aborted}


def _is_filled(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _events(db: sqlite3.Connection, sites: dict[int, Site], rank: int) -> Iterator[Event]:
    rows = db.execute(
        "SELECT seq, kind, step, microstep, phase, time, site, data FROM raw_events ORDER BY seq"
    )
    for seq, kind, step, microstep, phase, time_s, site, data in rows:
        yield Event(
            seq,
            kind,
            step,
            microstep,
            phase,
            time_s,
            sites.get(site),
            rank,
            revive(json.loads(data)) if data else {},
        )


def _steps(db: sqlite3.Connection) -> dict[str, Any]:
    names = ", ".join(f'"{n}"' for n in STEP_COLUMNS)
    rows = db.execute(f"SELECT {names} FROM raw_steps ORDER BY row").fetchall()
    table = np.array(
        [[np.nan if v is None else float(v) for v in row] for row in rows], dtype=np.float64
    )
    table = table.reshape(len(rows), len(STEP_COLUMNS))
    return {name: table[:, i] for i, name in enumerate(STEP_COLUMNS)}


def _statistics(db: sqlite3.Connection, num_tensors: int) -> tuple[Any, dict[str, Any]]:
    layouts = {
        i: np.array(json.loads(t), np.int64)
        for i, t in db.execute("SELECT id, tensors FROM layouts")
    }
    total = db.execute("SELECT count(*) FROM tensor_rows").fetchone()[0]
    stride = max(1, -(-total // MAX_TENSOR_ROWS))
    query = (
        "SELECT step, layout, columns, data FROM tensor_rows WHERE row % ? = 0 OR row < 200 "
        "OR row >= ? ORDER BY row"
    )
    rows = db.execute(query, (stride, total - 200)).fetchall()
    width = max([num_tensors, *(int(t.max()) + 1 for t in layouts.values() if len(t))], default=0)
    steps = np.array([r[0] for r in rows], np.int64)
    out = {
        name: np.full((len(rows), width), NOT_MEASURED, np.float32) for name in TENSOR_STATISTICS
    }
    for i, (_, layout, columns, data) in enumerate(rows):
        where = layouts.get(layout)
        if where is None or not columns:
            continue
        names = columns.split(",")
        values = np.frombuffer(data, np.float32).reshape(len(names), -1)
        for name, row in zip(names, values, strict=True):
            if name in out:
                out[name][i, where] = row
    return steps, out


def _batches(db: sqlite3.Connection) -> Iterator[Batch]:
    rows = db.execute(
        "SELECT id, step, phase, source, wait_ms, epoch, data, fingerprints FROM "
        "raw_batches ORDER BY id"
    )
    for index, step, phase, source, wait_ms, epoch, data, marks in rows:
        body = json.loads(data)
        prints = tuple(np.frombuffer(marks, np.int64).tolist())
        tensors = tuple(revive(body["tensors"]))
        yield Batch(
            step, body["microstep"], phase, source, wait_ms or 0.0, tensors, prints, epoch, index
        )
