"""The database of a run folder, version 1. One file, one writer per rank, readable while the run
goes on.

Packed statistics: `tensor_rows.data` holds float32 values, column after column (names in
`columns`), each as long as the layout's list of tensors. -1 means not measured, -2 no gradient; NaN
and Inf are what was measured.
"""

from __future__ import annotations

from sawbones.schema.run import STEP_COLUMNS

SCHEMA_VERSION = 3

_STEP_FIELDS = ", ".join(f'"{name}" REAL' for name in STEP_COLUMNS)

TABLES = f"""
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS sites(id INTEGER PRIMARY KEY, file TEXT, line INTEGER, function TEXT, code TEXT);
CREATE TABLE IF NOT EXISTS raw_events(seq INTEGER PRIMARY KEY, kind TEXT, step INTEGER, microstep INTEGER, phase TEXT,
    time REAL, site INTEGER, data TEXT);
CREATE TABLE IF NOT EXISTS raw_steps(row INTEGER PRIMARY KEY, {_STEP_FIELDS});
CREATE TABLE IF NOT EXISTS layouts(id INTEGER PRIMARY KEY, tensors TEXT);
CREATE TABLE IF NOT EXISTS tensor_rows(row INTEGER PRIMARY KEY, step INTEGER, layout INTEGER, columns TEXT, data BLOB);
CREATE TABLE IF NOT EXISTS records(kind TEXT, id INTEGER, data BLOB, PRIMARY KEY(kind, id));
CREATE TABLE IF NOT EXISTS raw_batches(id INTEGER PRIMARY KEY, step INTEGER, phase TEXT, source TEXT, wait_ms REAL,
    epoch INTEGER, data TEXT, fingerprints BLOB);
"""

# The documented surface of `sawbones query`. `tensors` is unpacked on demand, see query.py.
VIEWS = """
CREATE VIEW IF NOT EXISTS steps AS SELECT * FROM raw_steps;
CREATE VIEW IF NOT EXISTS events AS
    SELECT e.seq, e.kind, e.step, e.microstep, e.phase, e.time, s.file, s.line, s.function, s.code, e.data
    FROM raw_events e LEFT JOIN sites s ON s.id = e.site;
CREATE VIEW IF NOT EXISTS batches AS
    SELECT id, step, phase, source, wait_ms, epoch, data, length(fingerprints) / 8 AS num_samples FROM raw_batches;
"""
