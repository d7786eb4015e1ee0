"""Run folder -> Run. Opens read-only, also while the run is still going or after it was killed."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
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
    Evaluated,
    Event,
    Module,
    Optimizer,
    Run,
    Site,
    Tensor,
)
from sawbones.schema.errors import SawbonesError
from sawbones.schema.observed import Observed
from sawbones.schema.one_off import Logged
from sawbones.store.codec import decode_fields, from_plain, revive
from sawbones.store.errors import RunNotReadable
from sawbones.store.joined_shards import join_shards
from sawbones.store.limits import MAX_ROWS, Allowance
from sawbones.store.opening import connect, database_path
from sawbones.store.ring import read_ring, stacks_path

MAX_TENSOR_ROWS = 2000
STEPS_AT_ONCE = 20_000
MAX_RANKS = 4096
MAX_NAME = 8192  # of a file, a function or a line of source
MAX_ARGUMENT = 1 << 17  # of a command line, as the kernel has it
# What decoding raises on values that no recorder writes.
_MISFITS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)


def read_run(folder: str | Path) -> Run:
    """The recording in this folder, also of a run that is still going or was killed."""
    folder = Path(folder)
    others = sorted(
        int(number)
        for p in folder.glob("run-rank*.db")
        if (number := p.stem.removeprefix("run-rank")).isascii() and number.isdigit()
    )[:MAX_RANKS]
    # On a second machine there is no rank 0: the first rank of that machine stands in for it.
    first = others.pop(0) if others and not database_path(folder).exists() else 0
    run = _read_rank(folder, first)
    if not others:
        return run
    ranks = tuple(_read_rank(folder, rank) for rank in others)
    try:
        return join_shards(replace(run, ranks=ranks))
    except _MISFITS as error:
        raise _misfit(folder, error) from error


def _read_rank(folder: Path, rank: int) -> Run:
    with connect(folder, rank) as db:
        try:
            path = database_path(folder, rank)
            return _decoded(folder, rank, db, Allowance(str(path), path.stat().st_size))
        except _MISFITS as error:
            raise _misfit(folder, error) from error


def _misfit(folder: Path, error: Exception) -> SawbonesError:
    text = (str(error) or type(error).__name__).splitlines()[0][:120]
    return RunNotReadable(
        f"{folder} holds a value that no recorder writes ({type(error).__name__}: {text})."
    )


def _decoded(folder: Path, rank: int, db: sqlite3.Connection, allowance: Allowance) -> Run:
    meta = {
        str(k): revive(allowance.parsed(v)) for k, v in _rows(db, "SELECT key, value FROM meta")
    }
    sites = {
        i: Site(_text(f)[:MAX_NAME], _whole(n), _text(fn)[:MAX_NAME], _text(c)[:MAX_NAME])
        for i, f, n, fn, c in _rows(db, "SELECT id, file, line, function, code FROM sites")
    }
    tensors = tuple(_records(db, allowance, "tensor", Tensor))
    tensor_steps, statistics = _statistics(db, allowance, len(tensors))
    steps = _steps(db)
    ending = next(iter(_records(db, allowance, "ending", Ending)), None)
    seconds = float(meta.get("seconds", 0.0)) or (
        float(steps["time"][-1]) if len(steps["time"]) else 0.0
    )
    rank = _whole(meta.get("rank", rank))
    graded = dict(meta.get("facts", {})).get("graded_evaluations") or {}
    facts = {
        **dict(meta.get("facts", {})),
        **({"masked": meta["masked"]} if meta.get("masked") else {}),
        **_one_off(db, allowance),
    }
    known = decode_fields(Observed, facts) | _last_calls(folder, rank)
    known["logged"] = tuple(_records(db, allowance, "logged", Logged)) or known.get("logged", ())
    return Run(
        script=_text(meta.get("script", ""))[:MAX_NAME],
        argv=tuple(_text(argument)[:MAX_ARGUMENT] for argument in meta.get("argv", ())),
        folder=str(folder),
        environment=dict(meta.get("environment", {})),
        ending=ending or Ending("killed"),
        rank=rank,
        world_size=_whole(meta.get("world_size", 1)),
        seconds=seconds,
        events=tuple(_events(db, allowance, sites, rank, graded.get("events") or ())),
        steps=steps,
        tensors=tensors,
        tensor_steps=tensor_steps,
        statistics=statistics,
        optimizers=tuple(_records(db, allowance, "optimizer", Optimizer)),
        modules=tuple(_records(db, allowance, "module", Module)),
        batches=tuple(_batches(db, allowance, graded.get("batches") or ())),
        deep=tuple(_records(db, allowance, "deep", DeepStep)),
        evaluated=tuple(_records(db, allowance, "evaluated", Evaluated)),
        signals=dict(meta.get("signals", {})),
        **known,
    )


def _rows(
    db: sqlite3.Connection, query: str, values: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(db.execute(query, values)):
        if number >= MAX_ROWS:
            raise RunNotReadable(
                f"a table has more than {MAX_ROWS:,} rows: {query.split('FROM')[-1]}"
            )
        yield row


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"a whole number was expected, not {type(value).__name__}")
    return value


def _records(
    db: sqlite3.Connection, allowance: Allowance, kind: str, cls: type[Any]
) -> Iterator[Any]:
    query = "SELECT data FROM records WHERE kind = ? ORDER BY id"
    for (data,) in _rows(db, query, (kind,)):
        yield from_plain(cls, allowance.unpacked(data))


def _one_off(db: sqlite3.Connection, allowance: Allowance) -> dict[str, Any]:
    """Records that are written once and read as facts: the first non-finite operator, operations on
    data, the label probe.
    """
    kinds = (
        "nonfinite",
        "made_tensors",
        "label_probe",
        "samples",
        "vocabularies",
        "redraw",
        "updates",
        "profile",
    )
    marks = ", ".join("?" * len(kinds))
    rows = db.execute(f"SELECT kind, data FROM records WHERE id = 0 AND kind IN ({marks})", kinds)
    return {kind: revive(allowance.unpacked(data)) for kind, data in rows}


def _last_calls(folder: Path, rank: int) -> dict[str, Any]:
    aborted = _start_of(stacks_path(folder, rank))
    return {"last_collectives": read_ring(folder, rank), "aborted": aborted}


def _start_of(path: Path, most: int = 4000) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


class _Stretches:
    """Stretches of a run, [first, behind the last], in which the model was evaluated with gradients
    on. That is known only when they are over, so that it is written apart.
    """

    def __init__(self, stretches: Iterable[Sequence[int]]) -> None:
        ordered = sorted((_whole(first), _whole(end)) for first, end in stretches)
        self._first = [first for first, _ in ordered]
        self._end = [end for _, end in ordered]

    def phase(self, number: int, phase: str) -> str:
        at = bisect_right(self._first, number) - 1
        return "eval" if at >= 0 and number < self._end[at] else phase


def _events(
    db: sqlite3.Connection,
    allowance: Allowance,
    sites: dict[int, Site],
    rank: int,
    graded: Iterable[Sequence[int]] = (),
) -> Iterator[Event]:
    evaluations = _Stretches(graded)
    rows = _rows(
        db,
        "SELECT seq, kind, step, microstep, phase, time, site, data FROM raw_events ORDER BY seq",
    )
    for seq, kind, step, microstep, phase, time_s, site, data in rows:
        yield Event(
            seq,
            _text(kind),
            _whole(step),
            microstep,
            evaluations.phase(seq, phase),
            time_s,
            sites.get(site),
            rank,
            dict(revive(allowance.parsed(data))) if data else {},
        )


def _steps(db: sqlite3.Connection) -> dict[str, Any]:
    names = ", ".join(f'"{n}"' for n in STEP_COLUMNS)
    rows = _rows(db, f"SELECT {names} FROM raw_steps ORDER BY row")
    # Some at a time: a million steps as Python's floats would take a gigabyte.
    parts = [np.zeros((0, len(STEP_COLUMNS)))]
    while some := list(islice(rows, STEPS_AT_ONCE)):
        parts.append(np.array(some, dtype=np.float64))  # NULL becomes NaN
    table = np.concatenate(parts)
    return {name: table[:, i] for i, name in enumerate(STEP_COLUMNS)}


def _statistics(
    db: sqlite3.Connection, allowance: Allowance, num_tensors: int
) -> tuple[Any, dict[str, Any]]:
    layouts = {
        i: np.array(allowance.parsed(t), np.int64).reshape(-1)
        for i, t in _rows(db, "SELECT id, tensors FROM layouts")
    }
    total = db.execute("SELECT count(*) FROM tensor_rows").fetchone()[0]
    stride = max(1, -(-total // MAX_TENSOR_ROWS))
    query = (
        "SELECT step, layout, columns, data FROM tensor_rows WHERE row % ? = 0 OR row < 200 "
        "OR row >= ? ORDER BY row"
    )
    rows = list(_rows(db, query, (stride, total - 200)))
    if any(len(t) and t.min() < 0 for t in layouts.values()):
        allowance.refuse("a layout names a tensor below 0")
    width = max([num_tensors, *(int(t.max()) + 1 for t in layouts.values() if len(t))], default=0)
    allowance.statistics(len(rows), width, len(TENSOR_STATISTICS))
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
            if name in out and len(row) == len(where):  # once written for another list
                out[name][i, where] = row
    return steps, out


def _batches(
    db: sqlite3.Connection, allowance: Allowance, graded: Iterable[Sequence[int]] = ()
) -> Iterator[Batch]:
    evaluations = _Stretches(graded)
    rows = _rows(
        db,
        "SELECT id, step, phase, source, wait_ms, epoch, data, fingerprints FROM "
        "raw_batches ORDER BY id",
    )
    for index, step, phase, source, wait_ms, epoch, data, marks in rows:
        body = allowance.parsed(data)
        prints = tuple(np.frombuffer(marks, np.int64).tolist())
        tensors = tuple(revive(body["tensors"]))
        told = evaluations.phase(index, phase)
        yield Batch(
            step, body["microstep"], told, source, wait_ms or 0.0, tensors, prints, epoch, index
        )
