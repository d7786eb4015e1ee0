"""What one audit command looks at: the splits, what each column is for, and the aggregates that
several audits share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sawbones.audits.engine.session import Session
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import Cuts, Tally, cuts_of, tally_categories, tally_numbers
from sawbones.audits.options import AuditError, CannotLook, Options, Thresholds
from sawbones.schema import Evidence, Finding, Fix

ROW_NAME = re.compile(
    r"(^|_|\b)(id|ids|uuid|guid|index|idx|row|rownum|unnamed: \d+|__index_level_\d+__)$",
    re.IGNORECASE,
)
MOST_CLASSES = 50


class Case:
    """The first split is the one to learn from: training data, or the reference of a shift."""

    def __init__(self, session: Session, splits: Mapping[str, Split], options: Options) -> None:
        self.session, self.splits, self.options = session, dict(splits), options
        self.first = next(iter(self.splits.values()))
        self.notes: list[str] = [note for split in self.splits.values() for note in split.notes]
        self.shared = [
            n for n in self.first.columns if all(n in s.columns for s in self.splits.values())
        ]
        if not self.shared:
            raise AuditError(
                "the splits share no column: "
                f"{'; '.join(f'{s.role} has {_some(list(s.columns))}' for s in self.splits.values())}"
            )
        self._check_names()
        self._note_columns()
        self._tallies: dict[tuple[Any, ...], dict[str, Tally]] = {}
        self._keys: dict[str, Any] = {}
        self.drawings: list[dict[str, Any]] = []  # distributions side by side, for the report
        self.found: dict[Any, Any] = {}  # what one audit measured and another can use

    @property
    def thresholds(self) -> Thresholds:
        return self.options.thresholds

    def _check_names(self) -> None:
        options = self.options
        named = {
            "label": options.label,
            "group": options.group,
            "time": options.time,
            "text": options.text,
            "prediction": options.prediction,
            "answer": options.answer,
        }
        for flag, name in [*named.items(), *(("segment", n) for n in options.segments)]:
            if name is not None and name not in self.first.columns:
                raise AuditError(
                    f"--{flag} {name}: no such column in {self.first.role}. Columns: "
                    f"{_some(list(self.first.columns))}"
                )

    def _note_columns(self) -> None:
        for split in self.splits.values():
            own = [n for n in split.columns if n not in self.shared]
            if own:
                self.notes.append(
                    f"only in {split.role}: {_some(own)}; compared on the "
                    f"{len(self.shared)} shared columns"
                )
        empty = [
            n
            for n in self.shared
            if any(s.columns[n].kind == "empty" for s in self.splits.values())
        ]
        if empty:
            self.notes.append(
                f"without a single value in one of the splits, and not compared: {_some(empty)}"
            )
        if self.row_names:
            self.notes.append(
                f"taken for row numbers or keys, and not compared: {_some(self.row_names)}"
            )

    @cached_property
    def row_names(self) -> list[str]:
        """Columns that name a row instead of describing it."""
        found = []
        for name in self.shared:
            if name in (
                self.options.label,
                self.options.group,
                self.options.time,
                self.options.text,
                self.options.prediction,
            ):
                continue
            columns = [s.columns[name] for s in self.splits.values()]
            if not all(c.unique for c in columns):
                continue
            rows = sum(c.count for c in columns)
            span = (
                max(c.max for c in columns) - min(c.min for c in columns)
                if columns[0].integer
                else math.inf
            )
            if ROW_NAME.search(name) or span < 1.5 * rows:
                found.append(name)
        return found

    def _usable(self, name: str) -> bool:
        kinds = {s.columns[name].kind for s in self.splits.values()}
        return (
            name not in self.options.ignore and name not in self.row_names and "empty" not in kinds
        )

    @cached_property
    def key_columns(self) -> list[str]:
        """The columns whose equality makes two rows the same record."""
        apart = {self.options.label, self.options.prediction}
        names = [n for n in self.shared if self._usable(n) and n not in apart]
        if not names:
            raise CannotLook("no column is left to compare rows by")
        return names

    @cached_property
    def features(self) -> list[str]:
        options = self.options
        apart = {options.label, options.prediction, options.group, options.time}
        return [n for n in self.shared if self._usable(n) and n not in apart]

    @cached_property
    def numbers(self) -> list[str]:
        found = [n for n in self.features if all(s.is_number(n) for s in self.splits.values())]
        return [
            n for n in found if any(s.columns[n].kind == "number" for s in self.splits.values())
        ]

    @cached_property
    def categories(self) -> list[str]:
        """Few values on the first side and not a different one for every row on the others."""
        found = [
            n
            for n in self.features
            if self.first.columns[n].kind == "category" and n not in self.numbers
        ]
        wide = [n for n in found if any(s.columns[n].distinct > 2000 for s in self.splits.values())]
        left_out = [
            n
            for n in self.features
            if n not in self.numbers and self.first.columns[n].kind == "key"
        ] + wide
        if left_out:
            self.notes.append(
                "too many different values to count one by one, and not compared: "
                f"{_some(left_out)}"
            )
        return [n for n in found if n not in wide]

    @cached_property
    def cuts(self) -> dict[str, Cuts]:
        return {n: cuts_of(self.sample_of(n)) for n in self.numbers}

    def sample_of(self, name: str) -> Any:
        found = self.first.sample.get(name)
        return np.zeros(0) if found is None or found.dtype == object else found

    @cached_property
    def label_kind(self) -> str | None:
        """class, quantity, or None without a usable label."""
        name = self.options.label
        if name is None or self.first.columns[name].kind == "empty":
            return None
        column = self.first.columns[name]
        if column.kind == "category" or (
            column.kind == "number" and self.first.distinct(name) <= 20
        ):
            return "class"
        return "quantity" if column.kind == "number" else None

    def label_of(self, split: Split) -> Any:
        """The label as an expression: a number where it is one, else text."""
        name = self.need_label(split)
        return split.number(name) if self.first.is_number(name) else split.category(name)

    def need_label(self, split: Split) -> str:
        name = self.options.label
        if name is None:
            raise CannotLook("no label was named (--label COLUMN)")
        if name not in split.columns:
            raise CannotLook(f"{split.role} has no column {name!r}")
        if self.label_kind is None:
            raise CannotLook(f"{name!r} is neither a class with few values nor a number")
        return name

    def tallies(
        self, split: Split, by_label: bool = False, only: tuple[str, ...] | None = None
    ) -> dict[str, Tally]:
        """Counts of every feature (or of some), by class or with sums of the label on request;
        computed once for a split.
        """
        known = (split.role, self.label_kind if by_label else None, only)
        if known not in self._tallies:
            label = self.label_of(split) if by_label else None
            by, value = (label, None) if self.label_kind == "class" else (None, label)
            chosen = {n: c for n, c in self.cuts.items() if only is None or n in only}
            categories = [n for n in self.categories if only is None or n in only]
            self._tallies[known] = {
                **tally_numbers(split, chosen, by, value),
                **tally_categories(split, categories, by, value),
            }
        return self._tallies[known]

    @cached_property
    def finder(self) -> str | None:
        """The number that tells rows apart best: by it a few of them are found again without
        hashing all.
        """
        distinct = {n: self.first.distinct(n) for n in self.numbers if n in self.key_columns}
        best = max(distinct, key=lambda n: distinct[n], default=None)
        return (
            best if best is not None and distinct[best] >= min(self.first.rows, 1000) // 2 else None
        )

    def keys(self, split: Split) -> Any:
        """Hashes of the split's rows, kept; with label and finder beside them where there are
        such.
        """
        if split.role not in self._keys:
            labelled = self.options.label in split.columns and self.label_kind is not None
            beside = {"y": self.label_of(split)} if labelled else {}
            beside |= {"f": split.number(self.finder)} if self.finder else {}
            self._keys[split.role] = self.session.keep(split.hashed(self.key_columns, **beside))
        return self._keys[split.role]

    def shown(self, value: Any) -> str:
        """A value from the user's data as the report may show it."""
        text = " ".join(str(value).split())
        if self.options.redact:
            return f"‹{len(text)} characters›"
        return text if len(text) <= 120 else text[:117] + "…"

    def row_text(self, row: Mapping[str, Any], most: int = 6) -> str:
        first = [
            n
            for n in (*self.row_names, self.options.group, self.options.time)
            if n is not None and n in row
        ]
        names = list(dict.fromkeys([*first, *(n for n in row if n not in ("h1", "h2"))]))
        more = ", …" if len(names) > most else ""
        return ", ".join(f"{name}={self.shown(_short(row[name]))}" for name in names[:most]) + more


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _some(names: list[str]) -> str:
    more = f", … {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(str, names[:8])) + more


def made(
    fault: str,
    status: str,
    confidence: float,
    title: str,
    evidence: list[Evidence],
    fix: str,
    **params: Any,
) -> Finding:
    """A finding about data: it has no line of code; its columns, rows and distributions are in
    `params`.
    """
    return Finding(fault, status, confidence, title, (), tuple(evidence), Fix(fix), params=params)


def per_cent(share: float) -> str:
    return f"{100 * share:.3g} %"
