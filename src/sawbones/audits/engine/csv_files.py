"""CSV as it is met: broken rows, mixed types, other encodings. Strict first; each step down is said
in a note.
"""

from __future__ import annotations

import gzip
from typing import Any

from sawbones.audits.engine.session import Session, ibis_module
from sawbones.audits.options import AuditError


def read_csv(session: Session, paths: list[str], role: str, notes: list[str]) -> tuple[Any, int]:
    """(table, rows that could not be read). A CSV file is parsed once and kept: every later pass is
    over typed columns.
    """
    encoding = "utf-8" if all(_is_utf8(path) for path in paths) else "latin-1"
    if encoding != "utf-8":
        notes.append(
            f"{role}: the text is not UTF-8 and was read as Latin-1; letters beyond ASCII "
            "may be wrong"
        )
    if not session.is_duckdb:
        return session.keep(_spark_csv(session, paths, encoding)), 0
    more: dict[str, Any] = {"union_by_name": True} if len(paths) > 1 else {}
    if encoding != "utf-8":
        more["encoding"] = encoding
    # A sniffer that meets a broken row may settle for one column; the header knows better.
    more |= {"delim": mark} if (mark := _delimiter(paths[0])) else {}
    said = ""
    careless = {"sample_size": -1, "ignore_errors": True, "store_rejects": True}
    for attempt in ({}, {"sample_size": -1}, careless, {**careless, "strict_mode": False}):
        try:
            table = session.keep(session.backend.read_csv(paths, **more, **attempt))
        except (
            Exception
        ) as error:  # DuckDB has an exception class for each way a file can be broken
            said = said or str(error)
            continue
        rejected = _rejected(session) if "ignore_errors" in attempt else 0
        if rejected:
            notes.append(
                f"{role}: {rejected:,} rows of the CSV could not be read and were left out"
            )
        return table, rejected
    raise AuditError(f"{role}: {paths[0]} cannot be read as CSV: {_reason(said)}")


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.split("LINE 1:")[0].splitlines() if line.strip()]
    return " ".join(lines[:2])[:300] or "no reason was given"


def _delimiter(path: str) -> str | None:
    if path.endswith(".zst"):
        return None
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            header = file.readline(1 << 16)
    except OSError:
        return None
    counts = {mark: header.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


def _rejected(session: Session) -> int:
    try:
        row = session.backend.raw_sql(
            "SELECT count(DISTINCT (file_id, line)) FROM reject_errors"
        ).fetchone()
    except Exception:  # no table of rejects: nothing was rejected
        return 0
    return int(row[0])


def _is_utf8(path: str) -> bool:
    if path.endswith((".gz", ".zst")):
        return True
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return False
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _spark_csv(session: Session, paths: list[str], encoding: str) -> Any:
    reader = session.backend.read_csv
    tables = [
        reader(
            path,
            header=True,
            inferSchema=True,
            mode="DROPMALFORMED",
            encoding="ISO-8859-1" if encoding == "latin-1" else "UTF-8",
        )
        for path in paths
    ]
    return tables[0] if len(tables) == 1 else ibis_module().union(*tables)
