"""Whatever holds rows -> an Ibis table: files, folders, globs, data frames, Arrow, Hugging Face
folders, torch datasets.
"""

from __future__ import annotations

import glob
import importlib
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from sawbones.audits.engine.session import Session, ibis_module
from sawbones.audits.engine.torch_samples import is_samples, samples_table
from sawbones.audits.options import AuditError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSED = (".gz", ".zst")
OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
TAKES = (
    "Parquet, CSV, JSON-lines or Arrow files, folders and globs of them, a datasets folder, "
    "or module:object"
)


class Loaded:
    """A table, what it is called, and what has to be said about how it was read."""

    def __init__(self, table: Any, origin: str, notes: list[str], rejected: int = 0) -> None:
        self.table, self.origin, self.notes, self.rejected = table, origin, notes, rejected


def load(session: Session, source: Any, role: str) -> Loaded:
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        if OBJECT.fullmatch(text) and not os.path.exists(text):
            return _in_memory(session, _imported(text, role), text, role)
        return _files(session, text, role)
    return _in_memory(session, source, _type_name(source), role)


def _type_name(source: Any) -> str:
    return f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"


def _imported(text: str, role: str) -> Any:
    module_name, _, path = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
        return found() if callable(found) and not hasattr(found, "__getitem__") else found
    except Exception as error:
        raise AuditError(
            f"{role}: {text} could not be made: {type(error).__name__}: {error}"
        ) from error


def _in_memory(session: Session, source: Any, origin: str, role: str) -> Loaded:
    ibis = ibis_module()
    notes: list[str] = []
    if isinstance(source, ibis.Table):
        return Loaded(source, origin, notes)
    table = _as_arrow(source, notes, role)
    if table is None:
        raise AuditError(
            f"{role}: a {_type_name(source)} holds no rows that can be read. Taken: data "
            f"frames, Ibis tables, {TAKES}"
        )
    if not table.num_columns:
        raise AuditError(f"{role}: {origin} has no columns")
    return Loaded(session.bound(_plain(table)), origin, notes)


def _plain(table: Any) -> Any:
    """Dictionary and view columns as plain ones: not every engine takes them."""
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(
                index, field.name, table.column(index).cast(field.type.value_type)
            )
        elif pa.types.is_null(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return table


def _as_arrow(source: Any, notes: list[str], role: str) -> Any:
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if (
        hasattr(source, "data")
        and hasattr(getattr(source, "data", None), "table")
        and hasattr(source, "with_format")
    ):
        whole = source.with_format("arrow")[:]  # a datasets.Dataset, its indices applied
        return whole if isinstance(whole, pa.Table) else None
    if type(source).__module__.startswith("pandas") and hasattr(source, "columns"):
        return _from_pandas(source, notes, role)
    if hasattr(source, "to_arrow") and hasattr(source, "columns"):
        return source.to_arrow()
    if hasattr(source, "to_table"):
        return source.to_table()
    if isinstance(source, list) and source and all(isinstance(row, dict) for row in source):
        return _from_rows(source, notes, role)
    if is_samples(source):
        return samples_table(source, notes, role)
    return None


def _from_pandas(frame: Any, notes: list[str], role: str) -> Any:
    import pyarrow as pa

    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise AuditError(
            f"{role}: column {twice[0]!r} is there {Counter(frame.columns)[twice[0]]} "
            "times; a name may stand once"
        )
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except (
            pa.ArrowInvalid,
            pa.ArrowTypeError,
            pa.ArrowNotImplementedError,
            OverflowError,
            UnicodeError,
        ):
            frame[name] = frame[name].map(_text, na_action="ignore").astype("string")
            notes.append(f"{role}: column {name!r} mixes types and is read as text")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _from_rows(rows: list[dict[str, Any]], notes: list[str], role: str) -> Any:
    import pandas as pd

    return _from_pandas(pd.DataFrame(rows), notes, role)


def _text(value: Any) -> str:
    return (
        value.decode("utf-8", "replace")
        if isinstance(value, bytes)
        else str(value).encode("utf-8", "replace").decode()
    )


def _suffix(name: str) -> str:
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1].lower()


def _files(session: Session, text: str, role: str) -> Loaded:
    paths = _matching(text, role)
    kinds = Counter(FORMATS[_suffix(path)] for path in paths if _suffix(path) in FORMATS)
    if not kinds:
        raise AuditError(
            f"{role}: {text} is in no format that is known by its name. Taken: {TAKES}"
        )
    kind = kinds.most_common(1)[0][0]
    chosen = sorted(path for path in paths if FORMATS.get(_suffix(path)) == kind)
    notes = (
        [f"{role}: {len(paths) - len(chosen)} files beside the {kind} files were left out"]
        if len(chosen) < len(paths)
        else []
    )
    empty = [path for path in chosen if os.path.getsize(path) == 0]
    chosen = [path for path in chosen if path not in empty]
    if not chosen:
        raise AuditError(
            f"{role}: {text} is empty (0 bytes). A file with a header and rows was expected"
        )
    try:
        if kind == "csv":
            from sawbones.audits.engine.csv_files import read_csv

            table, rejected = read_csv(session, chosen, role, notes)
            return Loaded(table, text, notes, rejected)
        if kind == "parquet":
            return Loaded(_read(session, "parquet", chosen), text, notes)
        if kind == "json":
            return Loaded(session.keep(_read(session, "json", chosen)), text, notes)
        return Loaded(session.bound(_plain(_arrow_files(chosen))), text, notes)
    except AuditError:
        raise
    except Exception as error:
        raise AuditError(f"{role}: {text} cannot be read as {kind}: {first_line(error)}") from error


def _read(session: Session, kind: str, paths: list[str]) -> Any:
    reader = getattr(session.backend, f"read_{kind}")
    if session.is_duckdb:
        more = {"union_by_name": True} if len(paths) > 1 else {}
        return reader(paths, **more)
    tables = [reader(path) for path in paths]
    return tables[0] if len(tables) == 1 else ibis_module().union(*tables)


def _arrow_files(paths: list[str]) -> Any:
    """Arrow IPC in both its forms; memory-mapped, so that a large folder is not read into
    memory.
    """
    import pyarrow as pa

    tables = []
    for path in paths:
        mapped = pa.memory_map(path)
        try:
            tables.append(pa.ipc.open_file(mapped).read_all())
        except pa.ArrowInvalid:
            mapped.seek(0)
            tables.append(pa.ipc.open_stream(mapped).read_all())
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def _matching(text: str, role: str) -> list[str]:
    path = Path(text)
    if path.is_dir():
        if (path / "dataset_dict.json").is_file():
            parts = sorted(p.name for p in path.iterdir() if p.is_dir())
            raise AuditError(
                f"{role}: {text} holds several splits. Name one: "
                f"{', '.join(str(path / part) for part in parts[:4])}"
            )
        found = [
            str(p)
            for p in sorted(path.rglob("*"))
            if p.is_file() and not _hidden(p.relative_to(path))
        ]
        if (path / "state.json").is_file():
            found = [name for name in found if name.endswith(".arrow")]
        if not found:
            raise AuditError(f"{role}: the folder {text} holds no files. Taken: {TAKES}")
        return found
    if path.is_file():
        return [text]
    found = [name for name in glob.glob(text, recursive=True) if os.path.isfile(name)]
    if not found:
        near = sorted(
            p.name
            for p in (path.parent if path.parent.is_dir() else Path()).iterdir()
            if _suffix(p.name) in FORMATS
        )
        listed = f" Data files there: {', '.join(near[:5])}." if near else ""
        raise AuditError(f"{role}: no file {text}.{listed} Taken: {TAKES}")
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
