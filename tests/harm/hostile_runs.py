"""Run folders that no recorder made: each function spoils a copy of a real one."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

CANARY = "canary-was-here"
CODE = f"__import__('pathlib').Path({CANARY!r}).touch()"
ESCAPES = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eevil\u2066\r\x08"
PAGE = "<script>fetch('//evil')</script><img src=x onerror=alert(1)>\"'>"
BREAKOUT = f'"""\n{CODE}\n"""'


class Touch:
    def __reduce__(self) -> Any:
        return (os.system, (f"touch {CANARY}",))


def edit(folder: Path, *statements: str, **values: Any) -> None:
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    for statement in statements:
        db.execute(statement, values if ":" in statement else {})
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()


def spoil_texts(folder: Path, text: str) -> None:
    """`text` in every place that holds text."""
    edit(
        folder,
        "UPDATE sites SET file = :t || file, function = :t, code = :t",
        "UPDATE meta SET value = :j WHERE key = 'script'",
        "UPDATE meta SET value = :a WHERE key = 'argv'",
        "UPDATE meta SET value = :e WHERE key = 'environment'",
        "UPDATE raw_batches SET source = :t, phase = :t",
        t=text,
        j=json.dumps(text + "train.py"),
        a=json.dumps([text, f"--x={text}"]),
        e=json.dumps({text: text, "torch": text}),
    )
    for kind in ("ending", "module", "tensor"):
        change_records(folder, kind, lambda value: with_text(value, text))


def with_text(value: Any, text: str) -> Any:
    """In each string, except for the few words that say of what kind a record is."""
    if isinstance(value, dict):
        keep = ("kind", "dtype", "device")
        return {k: v if k in keep else with_text(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [with_text(v, text) for v in value]
    return text + value if isinstance(value, str) else value


def change_records(folder: Path, kind: str, change: Callable[[Any], Any]) -> None:
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    rows = db.execute("SELECT id, data FROM records WHERE kind = ?", (kind,)).fetchall()
    for number, data in rows:
        new = json.dumps(change(json.loads(zlib.decompress(data)))).encode()
        db.execute(
            "UPDATE records SET data = ? WHERE kind = ? AND id = ?",
            (zlib.compress(new), kind, number),
        )
    db.close()


def put_record(folder: Path, kind: str, content: bytes, number: int = 0) -> None:
    edit(folder, "DELETE FROM records WHERE kind = :k AND id = :i", k=kind, i=number)
    edit(folder, "INSERT INTO records VALUES(:k, :i, :d)", k=kind, i=number, d=content)


def instead(folder: Path, make: Callable[[Path], Any]) -> None:
    """Something else where the database was."""
    for path in folder.glob("run.db*"):
        path.unlink()
    make(folder / "run.db")


def repeated(piece: bytes, count: int, start: bytes = b"[", end: bytes = b"0]") -> bytes:
    packer = zlib.compressobj(9)
    parts = [packer.compress(start)]
    parts += [packer.compress(piece * 100_000) for _ in range(count // 100_000)]
    return b"".join([*parts, packer.compress(end), packer.flush()])


def huge_statistics(folder: Path) -> None:
    """Some bytes of layout that ask for gigabytes of statistics."""
    edit(folder, "UPDATE layouts SET tensors = :t", t=json.dumps([3_000_000]))
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    (layout,) = db.execute("SELECT id FROM layouts LIMIT 1").fetchone()
    rows = [(10_000 + i, i, layout, "grad_l2", b"\0\0\0\0") for i in range(500)]
    db.executemany("INSERT INTO tensor_rows VALUES(?,?,?,?,?)", rows)
    db.close()


def computing_view(folder: Path) -> None:
    endless = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS key, n "
        "AS value FROM c"
    )
    edit(folder, "ALTER TABLE meta RENAME TO meta_old", f"CREATE VIEW meta AS {endless}")


def flipped(folder: Path) -> None:
    path = folder / "run.db"
    edit(folder)
    content = bytearray(path.read_bytes())
    for at in range(200, len(content), 97):
        content[at] ^= 0x5A
    path.write_bytes(content)


def secret_file_named(folder: Path) -> None:
    secret = folder.parent / "id_rsa"
    secret.write_text("the user's own private words\n" * 30)
    edit(folder, "UPDATE sites SET file = :f, line = 3", f=str(secret))
    change_records(folder, "ending", lambda v: {**v, "site": {**v["site"], "file": str(secret)}})


def linked_log(folder: Path) -> None:
    victim = folder.parent / "victim.txt"
    victim.write_text("mine")
    edit(folder)
    (folder / "run.db-wal").unlink(missing_ok=True)
    (folder / "run.db-wal").symlink_to(victim)


def odd_ranks(folder: Path) -> None:
    for name in ("run-rank٣.db", "run-rank-1.db", "run-rankx.db", "run-rank1e9.db"):
        (folder / name).write_bytes(b"not a database")


def pipes(folder: Path) -> None:
    for name in ("collectives-rank0.ring", "stacks-rank0.txt"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)


HOSTILE_RUNS: dict[str, Callable[[Path], Any]] = {
    "terminal escapes in every text": lambda f: spoil_texts(f, ESCAPES),
    "markup of rich in every text": lambda f: spoil_texts(f, "[blink][link=file:///etc]"),
    "HTML in every text": lambda f: spoil_texts(f, PAGE),
    "a docstring that ends early": lambda f: spoil_texts(f, BREAKOUT),
    "lines of code in names": lambda f: spoil_texts(f, f"x\n{CODE}\n\u2028{CODE}\n#"),
    "quotes and backslashes in names": lambda f: spoil_texts(f, "'\\\"+" + CODE + "+\"\\'"),
    "megabytes of text": lambda f: spoil_texts(f, "A" * 200_000),
    "a compressed bomb": lambda f: put_record(f, "deep", repeated(b"0", 300_000_000)),
    "a bomb of empty lists": lambda f: put_record(f, "deep", repeated(b"[],", 30_000_000)),
    "a bomb as a fact": lambda f: put_record(f, "samples", repeated(b"[],", 30_000_000)),
    "deep nesting": lambda f: put_record(f, "deep", repeated(b"[", 3_000_000, b"", b"")),
    "an endless number": lambda f: edit(
        f, "UPDATE meta SET value = :n WHERE key = 'seconds'", n="9" * 100_000
    ),
    "a tensor of index 10^12": lambda f: edit(
        f, "UPDATE layouts SET tensors = :t", t="[1000000000000]"
    ),
    "a tensor below zero": lambda f: edit(f, "UPDATE layouts SET tensors = :t", t="[-5]"),
    "statistics of gigabytes": huge_statistics,
    "a view that never ends": computing_view,
    "a trigger": lambda f: edit(
        f, "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM sites; END"
    ),
    "one view more": lambda f: edit(f, "CREATE VIEW more AS SELECT randomblob(1000000000) AS x"),
    "a column that computes": lambda f: edit(
        f, "ALTER TABLE sites ADD COLUMN x AS (zeroblob(1000000000))"
    ),
    "a link to another file": lambda f: instead(f, lambda p: p.symlink_to("/etc/passwd")),
    "a pipe": lambda f: instead(f, os.mkfifo),
    "a folder": lambda f: instead(f, Path.mkdir),
    "an empty file": lambda f: instead(f, Path.touch),
    "a script": lambda f: instead(f, lambda p: p.write_text(f"#!/usr/bin/env python\n{CODE}\n")),
    "a file of 100 GB": lambda f: instead(f, lambda p: (p.touch(), os.truncate(p, 100 << 30))),
    "flipped bits": flipped,
    "a link as its log": linked_log,
    "words where numbers belong": lambda f: edit(
        f, "UPDATE sites SET line = 'x'", "UPDATE raw_events SET step = 'y'"
    ),
    "bytes where words belong": lambda f: edit(f, "UPDATE raw_events SET kind = x'1b5b'"),
    "facts that are a list": lambda f: edit(
        f, "UPDATE meta SET value = '[1]' WHERE key IN ('facts', 'environment', 'argv')"
    ),
    "an odd number of bytes": lambda f: edit(f, "UPDATE tensor_rows SET data = x'010203'"),
    "a pickle as a record": lambda f: put_record(f, "ending", pickle.dumps(Touch())),
    "a compressed pickle": lambda f: put_record(f, "ending", zlib.compress(pickle.dumps(Touch()))),
    "a record of the wrong kind": lambda f: put_record(f, "ending", zlib.compress(b'[1,"x"]')),
    "a newer version": lambda f: edit(
        f, "UPDATE meta SET value = '999' WHERE key = 'schema_version'"
    ),
    "the user's own key as a source file": secret_file_named,
    "ranks with odd names": odd_ranks,
    "pipes as side files": pipes,
    "steps of words": lambda f: edit(f, "UPDATE raw_steps SET loss = 'x', grad_norm = 'inf'"),
}
