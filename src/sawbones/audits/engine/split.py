"""One data set as the audits see it: clean columns, what each of them is, and its first statistics,
all from one scan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sawbones.audits.engine.inputs import Loaded, first_line
from sawbones.audits.engine.session import Session, ibis_module
from sawbones.audits.options import AuditError

FEW_VALUES = 20  # an integer with no more distinct values than this is a category
MOST_CATEGORIES = 1000
LONG_TEXT = 30  # mean length from which a string column with many values is text
SAMPLE_ROWS = 20_000
SALT = 7
MISSING_TEXT = "\x01"


@dataclass(frozen=True, slots=True)
class Column:
    """kind: number, category, text, time, key (a string with nearly as many values as rows),
    empty.
    """

    name: str
    kind: str
    integer: bool
    count: int  # not missing
    missing: int  # NULL or NaN
    infinite: int
    nan: int
    distinct: int  # approximate; -1 for floats, where the sample has to do (Split.distinct)
    min: float = math.nan
    max: float = math.nan
    mean: float = math.nan
    std: float = math.nan
    length: float = 0.0

    @property
    def missing_share(self) -> float:
        return self.missing / max(1, self.count + self.missing)

    @property
    def unique(self) -> bool:
        """As many values as rows, as far as an approximate count can tell."""
        return self.count >= 50 and self.distinct >= 0.85 * self.count


class Split:
    """`table` has clean columns: numbers are float64 or int64 without NaN and Inf, times are
    timestamps, the rest is text.
    """

    def __init__(self, session: Session, role: str, loaded: Loaded) -> None:
        self.session, self.role, self.origin, self.rejected = (
            session,
            role,
            loaded.origin,
            loaded.rejected,
        )
        self.notes = list(loaded.notes)
        self._raw = loaded.table
        self._types: dict[str, str] = {}
        self._made = self._cleaned()
        self.rows, self.columns = self._profile()
        # Without NaN and Inf in it a column needs no guard against them in every later pass.
        guarded = {
            n
            for n, t in self._types.items()
            if t == "float" and not (self.columns[n].nan or self.columns[n].infinite)
        }
        plain = {
            n: self._raw[n].cast("float64") if n in guarded else made
            for n, made in self._made.items()
        }
        self.table = self._raw.select(**plain)
        if self.rows == 0:
            raise AuditError(
                f"{role}: {self.origin} has columns ({_some(list(self._raw.columns))}) "
                "and no rows. There is nothing to audit"
            )

    def _cleaned(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        left_out = []
        for name, kind in self._raw.schema().items():
            column = self._raw[name]
            if kind.is_boolean():
                made[name], self._types[name] = column.cast("int8").cast("string"), "category"
            elif kind.is_integer():
                # Unsigned 64-bit numbers may be beyond int64.
                made[name], self._types[name] = (
                    column.cast("float64" if kind.is_uint64() else "int64"),
                    "integer",
                )
            elif kind.is_floating() or kind.is_decimal():
                number = column.cast("float64")
                bad = number.isnan() | _infinite(number)
                made[name], self._types[name] = (
                    bad.ifelse(ibis_module().null("float64"), number),
                    "float",
                )
            elif kind.is_string():
                made[name], self._types[name] = column.cast("string"), "string"
            elif kind.is_date() or kind.is_timestamp():
                made[name], self._types[name] = column.cast("timestamp"), "time"
            elif (
                kind.is_array()
                or kind.is_struct()
                or kind.is_map()
                or kind.is_uuid()
                or kind.is_json()
                or kind.is_time()
            ):
                made[name], self._types[name] = column.cast("string"), "string"
            else:
                left_out.append(f"{name} ({kind})")
        if left_out:
            self.notes.append(f"{self.role}: not looked at: {_some(left_out)}")
        if not made:
            raise AuditError(
                f"{self.role}: {self.origin} has no column that can be compared ({_some(left_out)})"
            )
        return made

    def _profile(self) -> tuple[int, dict[str, Column]]:
        # Over the raw table: NaN and Inf are gone from the clean one, and one aggregate has one
        # source.
        wanted: dict[str, Any] = {"rows": self._raw.count()}
        for i, (name, kind) in enumerate(self._types.items()):
            column = self._made[name]
            wanted[f"count{i}"] = column.count()
            if kind != "float":
                wanted[f"distinct{i}"] = column.approx_nunique()
            if kind in ("integer", "float"):
                number = column.cast("float64")
                wanted |= {
                    f"min{i}": number.min(),
                    f"max{i}": number.max(),
                    f"mean{i}": number.mean(),
                    f"std{i}": number.std(how="pop"),
                }
            if kind == "string":
                wanted[f"length{i}"] = column.length().mean()
            if kind == "float" and self._raw.schema()[name].is_floating():
                wanted[f"there{i}"] = self._raw[name].count()
        try:
            found = self.session.rows(self._raw.aggregate(**wanted))[0]
            found |= self._odd(found)
        except Exception as error:
            raise AuditError(
                f"{self.role}: {self.origin} cannot be read: {first_line(error)}"
            ) from error
        rows = int(found["rows"])
        columns = {
            name: _column(
                name, kind, rows, {k[: -len(str(i))]: v for k, v in found.items() if _belongs(k, i)}
            )
            for i, (name, kind) in enumerate(self._types.items())
        }
        return rows, columns

    def _odd(self, found: dict[str, Any]) -> dict[str, Any]:
        """How many values are NaN and how many infinite, where the clean column lost any; most data
        needs no second look.
        """
        wanted: dict[str, Any] = {}
        for i, name in enumerate(self._types):
            if found.get(f"there{i}", 0) > found[f"count{i}"]:
                raw = self._raw[name].cast("float64")
                wanted |= {
                    f"nan{i}": raw.isnan().cast("int64").sum(),
                    f"inf{i}": _infinite(raw).cast("int64").sum(),
                }
        return self.session.rows(self._raw.aggregate(**wanted))[0] if wanted else {}

    def distinct(self, name: str) -> int:
        """How many different values: approximate, of a float those in the sample."""
        known = self.columns[name].distinct
        if known >= 0 or name not in self.sample:
            return max(known, 0)
        values = self.sample[name]
        return len(np.unique(values[np.isfinite(values)]))

    def of_kind(self, *kinds: str) -> list[str]:
        return [name for name, column in self.columns.items() if column.kind in kinds]

    def number(self, name: str) -> Any:
        """The column as float64: a number, or a time in seconds."""
        column = self.table[name]
        if self._types[name] == "time":
            return column.epoch_seconds().cast("float64")
        if self._types[name] in ("string", "category"):
            return column.try_cast("float64")
        return column.cast("float64")

    def seconds(self, name: str) -> Any:
        """The column as a moment: a timestamp, a number, or text that spells either."""
        column = self.table[name]
        if self._types[name] in ("string", "category"):
            ibis = ibis_module()
            return ibis.coalesce(
                column.try_cast("timestamp").epoch_seconds().cast("float64"),
                column.try_cast("float64"),
            )
        return self.number(name)

    def key_fields(self, names: list[str]) -> dict[str, Any]:
        """Columns normalised for comparison: equal records give equal fields on every engine,
        missing values included.
        """
        ibis = ibis_module()
        fields: dict[str, Any] = {}
        for index, name in enumerate(names):
            column, kind = self.table[name], self._types[name]
            if kind in ("integer", "float"):
                # Spark's hash passes over NULL as if it were not there, and 0.0 and -0.0 are one
                # number.
                value = ibis.coalesce(column.cast("float64") + 0.0, -1.2345678e300)
            elif kind == "time":
                value = ibis.coalesce(column.cast("string"), MISSING_TEXT)
            else:
                value = ibis.coalesce(column.lower().re_replace(r"\s+", " ").strip(), MISSING_TEXT)
            fields[f"k{index}"] = value
        return fields

    def hashed(self, names: list[str], where: Any = None, **beside: Any) -> Any:
        """A hash of each row (of those where `where` holds), in as many columns as the engine
        needs; and what is asked beside.
        """
        ibis = ibis_module()
        fields = self.key_fields(names)
        made = {"h1": ibis.struct(fields).hash()}
        if "h2" in self.session.hashes:
            made["h2"] = ibis.struct({"salt": ibis.literal(SALT), **fields}).hash()
        chosen = self.table if where is None else self.table.filter(where)
        return chosen.select(**made, **beside)

    @cached_property
    def sample(self) -> dict[str, Any]:
        """Some 20,000 rows as NumPy arrays, the same in every run: numbers as float64 (NaN
        missing), the rest as objects.
        """
        ibis = ibis_module()
        names = [n for n, c in self.columns.items() if c.kind in ("number", "category", "time")]
        if not names:
            return {}
        chosen = self.table
        stride = -(-self.rows // SAMPLE_ROWS)
        if stride > 1:
            spread = ibis.struct(
                {
                    f"k{i}": ibis.coalesce(self._sampled(chosen, n).cast("string"), "")
                    if self.columns[n].kind == "category"
                    else ibis.coalesce(self._sampled(chosen, n), 0.5)
                    for i, n in enumerate(names)
                }
            ).hash()
            chosen = chosen.filter((spread % stride) == 0)
        arrow = self.session.arrow(
            chosen.select(**{name: self._sampled(chosen, name) for name in names})
        )
        if stride > 1 and not 0.5 < arrow.num_rows * stride / self.rows < 2:
            # Few distinct rows: equal ones are all in or all out.
            chosen = self.table.mutate(_row=ibis.row_number()).filter((ibis._._row % stride) == 0)
            arrow = self.session.arrow(
                chosen.select(**{name: self._sampled(chosen, name) for name in names})
            )
        return {name: _numpy(arrow.column(name), self.columns[name].kind) for name in names}

    def _sampled(self, table: Any, name: str) -> Any:
        column = table[name]
        if self._types[name] == "time":
            return column.epoch_seconds().cast("float64")
        return (
            column.cast("float64") if self.columns[name].kind == "number" else column.cast("string")
        )

    def category(self, name: str) -> Any:
        """The column as text, equal on both sides of a comparison whatever its type."""
        column = self.table[name]
        return (
            column.cast("int64").cast("string")
            if self._types[name] == "integer"
            else column.cast("string")
        )

    def is_number(self, name: str) -> bool:
        return self._types[name] in ("integer", "float")

    @cached_property
    def id_columns(self) -> list[str]:
        """Lists of whole numbers: texts that were tokenized before."""
        return [
            n
            for n, kind in self._raw.schema().items()
            if kind.is_array() and kind.value_type.is_integer()
        ]

    def ids_beyond(self, name: str, size: int) -> tuple[int, int, int]:
        """(lowest, highest, how many below 0 or from `size` on) of the numbers in a column of
        lists; -100 is passed over.
        """
        ibis = ibis_module()
        ids = self._raw.select(i=self._raw[name].unnest().cast("int64")).filter(ibis._.i != -100)
        outside = ((ids.i < 0) | (ids.i >= size)).cast("int64").sum()
        row = self.session.rows(ids.aggregate(low=ids.i.min(), high=ids.i.max(), outside=outside))[
            0
        ]
        return int(row["low"] or 0), int(row["high"] or 0), int(row["outside"] or 0)

    def is_text(self, name: str) -> bool:
        return self._types[name] == "string"


def _infinite(number: Any) -> Any:
    """Ibis's own `isinf` is false for every value on Spark."""
    return number.abs() == float("inf")


def _belongs(key: str, index: int) -> bool:
    digits = str(index)
    return key.endswith(digits) and key[: -len(digits)].isalpha()


def _numpy(column: Any, kind: str) -> Any:
    if kind == "category":
        return np.array(column.to_pylist(), dtype=object)
    parts = [_floats(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _floats(chunk: Any) -> Any:
    """float64 with NaN for NULL, straight from the buffers: pyarrow's own ways import pandas
    first.
    """
    there, values = chunk.buffers()
    inside = slice(chunk.offset, chunk.offset + len(chunk))
    numbers = np.frombuffer(values, dtype=np.float64)[inside]
    if not chunk.null_count:
        return numbers
    return np.where(
        np.unpackbits(np.frombuffer(there, dtype=np.uint8), bitorder="little")[inside],
        numbers,
        np.nan,
    )


def _column(name: str, kind: str, rows: int, found: dict[str, Any]) -> Column:
    count, distinct = int(found["count"]), int(found.get("distinct", -1))
    nan, infinite = int(found.get("nan") or 0), int(found.get("inf") or 0)
    length = float(found.get("length") or 0.0)
    integer = kind == "integer"
    if count == 0:
        what = "empty"
    elif kind == "time":
        what = "time"
    elif integer or kind == "float":
        what = "category" if integer and distinct <= FEW_VALUES else "number"
    elif kind == "category" or distinct <= max(50, min(MOST_CATEGORIES, 0.2 * count)):
        what = "category"
    else:
        what = "text" if length >= LONG_TEXT else "key"
    numbers = {
        key: float(found[key])
        for key in ("min", "max", "mean", "std")
        if found.get(key) is not None
    }
    return Column(
        name, what, integer, count, rows - count, infinite, nan, distinct, length=length, **numbers
    )


def _some(names: list[str]) -> str:
    more = f", … {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
