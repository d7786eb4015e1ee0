"""The writer: records go into a list, a thread puts them on disk a few times a second.

SQLite in WAL mode: what a flush has handed to the operating system survives kill -9 of the process,
and readers never block the writer. A disk that is full or read-only switches writing off with one
warning; training goes on.
"""

from __future__ import annotations

import _thread
import json
import sqlite3
import threading
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sawbones.masking import (
    learn_arguments,
    mask,
    mask_all,
    mask_arguments,
    mask_json,
    masked_counts,
)
from sawbones.masking.process import learn_environment
from sawbones.schema import STEP_COLUMNS, Batch, Site
from sawbones.store.codec import to_plain
from sawbones.store.private import make_private_file
from sawbones.store.recordings import make_folder
from sawbones.store.tables import SCHEMA_VERSION, TABLES, VIEWS

FLUSH_SECONDS = 0.4

_INSERT = {  # with the number of values
    "site": ("INSERT OR IGNORE INTO sites VALUES", 5),
    "event": ("INSERT OR REPLACE INTO raw_events VALUES", 8),
    "step": ("INSERT OR REPLACE INTO raw_steps VALUES", len(STEP_COLUMNS) + 1),
    "layout": ("INSERT OR REPLACE INTO layouts VALUES", 2),
    "tensor_row": ("INSERT OR REPLACE INTO tensor_rows VALUES", 5),
    "meta": ("INSERT OR REPLACE INTO meta VALUES", 2),
    "record": ("INSERT OR REPLACE INTO records VALUES", 3),
    "batch": ("INSERT OR REPLACE INTO raw_batches VALUES", 8),
}
# rows to a statement: SQLite lets go of the interpreter for each, and getting it back disturbs the
# training
_AT_ONCE = 32


Entry = tuple[str, tuple[Any, ...]]
Rows = Mapping[str, Sequence[tuple[Any, ...]]]  # as they are stored, by kind


def step_entry(row: int, values: Mapping[str, float]) -> Entry:
    return "step", (row, *map(values.get, STEP_COLUMNS))


def tensor_entry(row: int, step: int, layout: int, columns: Mapping[str, Any]) -> Entry:
    return "tensor_row", (row, step, layout, dict(columns))


class RunWriter:
    """Appends records; never raises into the host once it is open."""

    def __init__(
        self, folder: Path, rank: int = 0, warn: Callable[[str], None] | None = None
    ) -> None:
        self.path = folder / (f"run-rank{rank}.db" if rank else "run.db")
        self._warn = warn or (lambda text: None)
        # Never replaced by another: whoever is about to append has got hold of it already.
        self._pending: deque[Entry] = deque()
        self._site_ids: dict[Site, int] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._flushed_by = 0  # thread that is writing
        self._masked: dict[str, int] = {}  # as it was last written
        self.failed: str | None = None
        try:
            make_folder(folder)
            make_private_file(self.path)
            self._db = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.executescript(TABLES + VIEWS)
            self._insert("meta", [("schema_version", str(SCHEMA_VERSION))])
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            return
        # Not a threading.Thread: a script that counts or joins its threads must not meet this one.
        self._over = threading.Event()
        _thread.start_new_thread(self._loop, ())

    # Each of the following costs a tuple and an append.

    def event(
        self,
        seq: int,
        kind: str,
        step: int,
        microstep: int,
        phase: str,
        time_s: float,
        site: Site | None,
        data: Mapping[str, Any],
    ) -> None:
        self._pending.append(
            ("event", (seq, kind, step, microstep, phase, time_s, self._site(site), data))
        )

    def step(self, row: int, values: Mapping[str, float]) -> None:
        self._pending.append(step_entry(row, values))

    def layout(self, layout: int, tensors: Sequence[int]) -> None:
        self._pending.append(("layout", (layout, json.dumps(list(tensors)))))

    def tensor_row(self, row: int, step: int, layout: int, columns: Mapping[str, Any]) -> None:
        self._pending.append(tensor_entry(row, step, layout, columns))

    def later(self, make: Callable[[], Sequence[Entry]]) -> None:
        """Entries that are put together when they are written: many at a time, by the writer's
        thread.
        """
        self._pending.append(("later", (make,)))

    def stored(self, make: Callable[[], Rows]) -> None:
        """The same, of rows that need no further encoding."""
        self._pending.append(("stored", (make,)))

    def meta(self, key: str, value: Any) -> None:
        self._pending.append(("meta", (key, value)))

    def record(self, kind: str, index: int, value: Any) -> None:
        self._pending.append(("record", (kind, index, value)))

    def batch(self, index: int, batch: Batch) -> None:
        self._pending.append(("batch", (index, batch)))

    def _site(self, site: Site | None) -> int | None:
        if site is None:
            return None
        found = self._site_ids.get(site)
        if found is None:
            found = self._site_ids[site] = len(self._site_ids) + 1
            self._pending.append(("site", (found, site.file, site.line, site.function, site.code)))
        return found

    def flush(self) -> None:
        if self.failed is not None:
            self._pending.clear()
            return
        with self._lock:
            pending = [self._pending.popleft() for _ in range(len(self._pending))]
            if not pending:
                return
            self._flushed_by = threading.get_ident()
            try:
                learn_environment()
                rows: dict[str, list[tuple[Any, ...]]] = {}
                for given in pending:
                    if given[0] == "stored":
                        for kind, many in given[1][0]().items():
                            rows.setdefault(kind, []).extend(many)
                        continue
                    for kind, values in given[1][0]() if given[0] == "later" else (given,):
                        rows.setdefault(kind, []).append(_encode(kind, values))
                _mask_rows(rows)
                if masked_counts() != self._masked:
                    self._masked = masked_counts()
                    rows.setdefault("meta", []).append(("masked", _json(self._masked)))
                self._db.execute("BEGIN")
                for (
                    kind,
                    together,
                ) in rows.items():  # no table refers to another, so their order does not matter
                    self._insert(kind, together)
                self._db.execute("COMMIT")
            except Exception as error:  # of the disk, or of an entry that could not be put together
                self._fail(error)
            finally:
                self._flushed_by = 0

    def _insert(self, kind: str, rows: list[tuple[Any, ...]]) -> None:
        statement, width = _INSERT[kind]
        one = f"({','.join('?' * width)})"
        whole = len(rows) - len(rows) % _AT_ONCE
        for at in range(0, whole, _AT_ONCE):
            values = [value for row in rows[at : at + _AT_ONCE] for value in row]
            self._db.execute(f"{statement} {','.join([one] * _AT_ONCE)}", values)
        self._db.executemany(f"{statement} {one}", rows[whole:])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._flushed_by == threading.get_ident():
            # a signal handler that came in the middle of a flush of this very thread: waiting would
            # never end
            return
        self._wake.set()
        if self.failed is None:
            self._over.wait(timeout=10)
            self.flush()
            try:
                self._fold_in()
                self._db.close()
            except sqlite3.Error as error:
                self._fail(error)

    def _fold_in(self) -> None:
        """One file from here on: readers of a database in WAL mode, which may not write, would leave
        its two companions behind. Where one reads just now, it stays as it is.
        """
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA busy_timeout = 200")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("PRAGMA journal_mode = DELETE")

    def abandon(self) -> None:
        """After a fork: the child owns neither the thread nor the connection, and must not touch
        either.
        """
        self._closed = True
        self.failed = "forked"

    def _loop(self) -> None:
        while not self._closed:
            self._wake.wait(FLUSH_SECONDS)
            self.flush()
        self._over.set()

    def _fail(self, error: Exception) -> None:
        self.failed = f"{type(error).__name__}: {error}"
        self._warn(
            f"recording to {self.path.parent} stopped ({error}). Training continues unchanged. "
            "Record elsewhere: sawbones run --out FOLDER ..."
        )


# Most events and batches hold plain values, which this writes ten times faster than a walk over
# them; it stops at NaN and
# infinity, which JSON does not have.
_plain_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=to_plain).encode


def _json(value: Any) -> str:
    try:
        return _plain_json(value)
    except (ValueError, TypeError):
        return json.dumps(to_plain(value), separators=(",", ":"))


_TEXTS = {"event": (7,), "site": (1, 3, 4), "batch": (3, 6)}  # columns that hold text


def _mask_rows(rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """All texts of a flush are searched at once: a search for each of some hundred short ones would
    cost more than the flush itself.
    """
    texts = [
        row[column]
        for kind, columns in _TEXTS.items()
        for row in rows.get(kind, ())
        for column in columns
        if row[column]
    ]
    together = "\n".join(texts)
    if mask(together) == together:
        return
    for kind in _TEXTS:
        rows[kind] = [tuple(mask_all(row)) for row in rows.get(kind, ())]


def _encode(kind: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    import numpy as np  # not at the top: scripts set its number of threads before they import it

    if kind == "event":
        return (*values[:7], _json(values[7]) if values[7] else None)
    if kind == "tensor_row":
        row, step, layout, columns = values
        data = (
            np.concatenate([np.asarray(c, np.float32) for c in columns.values()])
            if columns
            else np.zeros(0, np.float32)
        )
        return (row, step, layout, ",".join(columns), data.tobytes())
    if kind == "meta":
        return (values[0], mask_json(_json(_masked_argv(*values))))
    if kind == "record":
        return (
            values[0],
            values[1],
            zlib.compress(mask_json(_json(to_plain(values[2]))).encode(), 3),
        )
    if kind == "batch":
        index, b = values
        body = _json({"microstep": b.microstep, "tensors": b.tensors})
        marks = np.asarray(b.fingerprints, np.int64).tobytes()
        return (index, b.step, b.phase, b.source, b.wait_ms, b.epoch, body, marks)
    if kind == "step":
        return tuple(_real(v) for v in values)
    return values


def _masked_argv(key: str, value: Any) -> Any:
    if key != "argv":
        return value
    learn_arguments(value)
    return mask_arguments(value)


def _real(value: Any) -> Any:
    # SQLite turns NaN into NULL: keep it as text, which a REAL column stores unchanged.
    if isinstance(value, float) and value - value != 0.0:
        return str(value)
    return value
