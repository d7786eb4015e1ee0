"""From the containers of a script and the rows that a model was given: which row is which, who is
trained on, who is only evaluated, and the line at which the data are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sawbones.observe.sources.containers import FEW_KINDS, Places
from sawbones.observe.sources.strangers import Column, find_strangers

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version

RECOGNISED = 0.9  # share of the rows of a phase that must be found among what the script holds
LEAST_TRAINED, LEAST_EVALUATED = 30, 10
_LOOKED_BACK = 16  # earlier containers that the rows of one are looked for in

MAX_COLUMNS = 64  # of one container that are looked at for groups and moments

Seen = Mapping[str, Mapping[int, float | None]]


@dataclass(frozen=True)
class Known:
    """Which source row is which, once that is known."""

    space: int
    count: int
    rows_of: Mapping[int, int]
    trained: set[int]
    evaluated: Sequence[int]
    labels: Sequence[tuple[int, int]]


class Matching:
    def __init__(self, versions: Sequence[Version], seen: Seen, width: int) -> None:
        self._versions = versions
        self._seen = seen
        self._width = width
        self._space: list[int] = []  # -1: a list of row numbers, no data
        self._base: list[Places] = []
        self._tables: dict[int, dict[int, int]] = {}
        self._known: Known | None = None  # once the rows of both phases were recognised
        for number in range(len(versions)):
            self._place(number)

    def _place(self, number: int) -> None:
        here = self._versions[number]
        if _is_index(here):
            self._space.append(-1)
            self._base.append(np.zeros(0, np.int64))
            return
        found = self._by_rows(number)
        if found is None:
            earlier = [
                u
                for u in range(number)
                if self._versions[u].count == here.count and self._space[u] >= 0
            ]
            found = (self._space[earlier[-1]], self._base[earlier[-1]]) if earlier else None
        if found is None:
            found = (number, np.arange(here.count))
        self._space.append(found[0])
        self._base.append(found[1])

    def _by_rows(self, number: int) -> tuple[int, Places] | None:
        """Where the rows themselves are found in an earlier container of the same width."""
        here = self._versions[number]
        hashes = here.rows.hashes
        alone = here.rows.numbers.shape[1] == 1  # single values repeat, whole rows are copies
        if alone and len(np.unique(hashes)) < RECOGNISED * len(hashes):
            return None
        looked = 0
        for u in range(number - 1, -1, -1):
            other = self._versions[u]
            same = other.rows.numbers.shape[1] == here.rows.numbers.shape[1]
            if self._space[u] < 0 or not same or looked >= _LOOKED_BACK:
                continue
            looked += 1
            table = self._table(u)
            places = np.array([table.get(h, -1) for h in hashes.tolist()], np.int64)
            if np.mean(places >= 0) >= RECOGNISED:
                base = np.where(places >= 0, self._base[u][places], -1)
                return self._space[u], base
        return None

    def _table(self, number: int) -> dict[int, int]:
        if number not in self._tables:
            hashes = self._versions[number].rows.hashes.tolist()
            self._tables[number] = {h: i for i, h in reversed(list(enumerate(hashes)))}
        return self._tables[number]

    def plan(self) -> dict[str, Any]:
        """What to change, and where; or why nothing can be."""
        if not self._seen["train"] or not self._seen["eval"]:
            return {"why": "no rows were seen in training and in evaluation"}
        space, rows_of = self._recognise()
        if space < 0:
            return {"why": "the rows that the model is given were not found in what it holds"}
        trained, evaluated = (
            {rows_of[h] for h in self._seen[phase] if rows_of.get(h, -1) >= 0}
            for phase in ("train", "eval")
        )
        only = sorted(evaluated - trained)
        if len(trained) < LEAST_TRAINED or len(only) < LEAST_EVALUATED:
            return {"why": "too few rows are evaluated that are not trained on as well"}
        whole = [v for v in range(len(self._versions)) if self._space[v] == space]
        count = max(self._versions[v].count for v in whole if self._is_whole(v))
        if any(i >= count for i in (only[-1], max(trained))):
            return {"why": "the table that holds all rows was not recognised"}
        labels = self._labels(space, count, rows_of)
        moment = self._moment(space, count, labels)
        if moment is None:
            return {"why": "the line at which all rows and their labels are there was not found"}
        self._known = Known(space, count, rows_of, trained, only, labels)
        # The later half: a row before all of them cannot depend on them in a process over time.
        rows = only[len(only) // 2 :]
        changed = set(rows)
        touched = [
            self._versions[v].name
            for v in whole
            if self._versions[v].count != count and changed & set(self._base[v].tolist())
        ]
        of_row = {str(h): i for h, i in rows_of.items() if h in self._seen["train"]}
        return {
            "count": count,
            "trained": len(trained),
            "evaluated": len(only),
            "rows": rows,
            "early": [int(h) for h, i in of_row.items() if 0 <= i < rows[0]],
            "evaluated_names": sorted(set(touched)),
            **moment,
        }

    def strangers(self) -> list[dict[str, Any]]:
        """Columns by which evaluated rows have relatives, or later ones, among those trained on."""
        known = self._known
        if known is None:
            return []
        places = {i: h for h, i in known.rows_of.items() if i >= 0}
        inputs = np.full((known.count, self._width), np.nan, np.float32)
        for v, version in enumerate(self._versions):
            if version.rows.numbers.shape[1] == self._width and self._space[v] == known.space:
                base = self._base[v]
                kept = [k for k, i in enumerate(base.tolist()) if 0 <= i < known.count]
                right = [k for k in kept if places.get(int(base[k])) == int(version.rows.hashes[k])]
                inputs[base[right]] = version.rows.numbers[right]
        marked = set(known.labels)
        columns = [
            Column(
                version.rows.names[c] if version.rows.names else version.name,
                version.rows.numbers[:, c],
                c in version.rows.dates,
                bool(version.rows.names),
            )
            for v, version in enumerate(self._versions)
            if self._space[v] == known.space and version.count == known.count and self._is_whole(v)
            for c in range(min(version.rows.numbers.shape[1], MAX_COLUMNS))
            if (v, c) not in marked
        ]
        labels = None
        if known.labels:
            v, c = known.labels[-1]
            labels = self._versions[v].rows.numbers[:, c]
        return find_strangers(columns, inputs, labels, sorted(known.trained), known.evaluated)

    def evaluated_rows(self) -> dict[str, int]:
        """Hash of an evaluated row -> its number."""
        known = self._known
        if known is None:
            return {}
        of_eval = {h: known.rows_of.get(h, -1) for h in self._seen["eval"]}
        return {str(h): i for h, i in of_eval.items() if i >= 0}

    def _is_whole(self, number: int) -> bool:
        base = self._base[number]
        return bool(np.array_equal(base, np.arange(len(base))))

    def _recognise(self) -> tuple[int, dict[int, int]]:
        """The set of rows that batches of both phases come from: hash of a row -> its number."""
        best: tuple[float, int, dict[int, int]] = (0.0, -1, {})
        for space in sorted(set(self._space) - {-1}):
            table: dict[int, int] = {}
            for v, version in enumerate(self._versions):
                fits = version.rows.numbers.shape[1] == self._width
                if self._space[v] == space and fits:
                    pairs = zip(version.rows.hashes.tolist(), self._base[v].tolist(), strict=True)
                    for h, i in pairs:
                        table.setdefault(h, i)
            least = min(
                sum(h in table for h in self._seen[phase]) / len(self._seen[phase])
                for phase in ("train", "eval")
            )
            if least > best[0]:
                best = (least, space, table)
        return (best[1], best[2]) if best[0] >= RECOGNISED else (-1, {})

    def _labels(self, space: int, count: int, rows_of: Mapping[int, int]) -> list[tuple[int, int]]:
        """(container, column) whose values are the targets of the rows trained on."""
        pairs = [
            (rows_of[h], t)
            for h, t in self._seen["train"].items()
            if t is not None and rows_of.get(h, -1) >= 0
        ]
        if len(pairs) < LEAST_TRAINED or len({t for _, t in pairs}) < 2:
            return []
        places = np.array([i for i, _ in pairs])
        values = np.array([t for _, t in pairs], np.float32)
        found = []
        for v, version in enumerate(self._versions):
            if self._space[v] != space or version.count != count or not self._is_whole(v):
                continue
            numbers = version.rows.numbers
            for column in range(min(numbers.shape[1], 512)):
                if np.array_equal(numbers[places, column], values):
                    found.append((v, column))
        return found

    def _moment(
        self, space: int, count: int, labels: Sequence[tuple[int, int]]
    ) -> dict[str, Any] | None:
        """The first line, of the outermost function, before which all rows and their labels are
        there.
        """
        best: dict[str, Any] | None = None
        rank: tuple[int, int] | None = None
        for code in dict.fromkeys(v.code for v in self._versions):
            held = [
                (v, version)
                for v, version in enumerate(self._versions)
                if version.code is code
                and self._space[v] == space
                and version.count == count
                and self._is_whole(v)
            ]
            marked = dict(reversed(labels))
            first = next((version for v, version in held if v in marked), None)
            if first is None:
                continue
            features = [
                (v, version)
                for v, version in held
                if v not in marked or version.rows.numbers.shape[1] > 1
            ]
            start = max(first.event, min((x.event for _, x in features), default=first.event))
            there = [(v, x) for v, x in held if x.event <= start]
            if not features or not there:
                continue
            at = next(x for _, x in held if x.event == start)
            if rank is None or (at.depth, at.event) < rank:
                rank = (at.depth, at.event)
                together = all(x.event == start for _, x in there)
                best = {
                    "file": at.file,
                    "function": code.co_name,
                    "line": at.line,
                    "at": at.at,
                    "names": sorted({x.name for v, x in there if v in dict(features)}),
                    "labels": [[x.name, marked[v]] for v, x in there if v in marked],
                    "together": together,
                }
        return best


def _is_index(version: Version) -> bool:
    """Row numbers, each once: a permutation or a part of one."""
    numbers = version.rows.numbers
    if version.rows.is_text or numbers.shape[1] != 1 or len(numbers) <= FEW_KINDS:
        return False
    column = numbers[:, 0]
    whole = bool(np.all(np.isfinite(column)) and np.all(column == np.round(column)))
    return whole and column.min() >= 0 and len(np.unique(column)) == len(column)
