"""From the containers of a script and the rows that a model was given: which row is which, who is
trained on, who is only evaluated, and the line at which the data are complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sawbones.observe.sources.answers import as_asked, follows_answer, is_answer
from sawbones.observe.sources.containers import Numbers, Places, Rows, hash_rows
from sawbones.observe.sources.filled import is_filled_for_one_class
from sawbones.observe.sources.paths import met_places, same_label_rows
from sawbones.observe.sources.placing import RECOGNISED, Placing
from sawbones.observe.sources.series import is_interleaved, is_series
from sawbones.observe.sources.strangers import Column, find_strangers, is_given
from sawbones.observe.sources.weaving import answers_met, unwoven
from sawbones.schema import Site
from sawbones.schema.sources import (
    CopyPaths,
    FilledColumns,
    Future,
    Place,
    Sources,
    StrangerRows,
)

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version

LEAST_TRAINED, LEAST_EVALUATED = 30, 10
MAX_GIVEN = 256  # inputs of the model that a column is compared with
COLUMNS_ASKED = 16  # of one container, for one that the model is given
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
    def __init__(
        self, versions: Sequence[Version], seen: Seen, width: int, given: Sequence[Numbers] = ()
    ) -> None:
        """`given`: what the model was given at once in evaluation, some of it."""
        self._versions = versions
        self._seen = seen
        self._width = width
        placing = Placing(versions)
        self._space, self._base = placing.space, placing.base
        self._given = _placed(placing, given)
        self._is_whole = placing.is_whole
        self._at: Place | None = None  # where rows and labels are there
        self._known: Known | None = None  # once the rows of both phases were recognised
        self.unwoven: list[Version] | None = None  # what is left where rows are made of others
        self.evaluated_names: set[str] = (
            set()
        )  # variables of rows that are changed, and of few others

    def plan(self) -> Sources:
        """What to change, and where; or why nothing can be."""
        if not self._seen["train"] or not self._seen["eval"]:
            return Sources("no rows were seen in training and in evaluation")
        space, rows_of = self._recognise()
        if space < 0:
            return Sources("the rows that the model is given were not found in what it holds")
        trained, evaluated = (
            {rows_of[h] for h in self._seen[phase] if rows_of.get(h, -1) >= 0}
            for phase in ("train", "eval")
        )
        only = sorted(evaluated - trained)
        if len(trained) < LEAST_TRAINED or len(only) < LEAST_EVALUATED:
            return Sources("too few rows are evaluated that are not trained on as well")
        whole = [v for v in range(len(self._versions)) if self._space[v] == space]
        count = max(self._versions[v].count for v in whole if self._is_whole(v))
        if any(i >= count for i in (only[-1], max(trained))):
            return Sources("the table that holds all rows was not recognised")
        labels = self._labels(space, count, rows_of)
        moment = self._moment(space, count, labels)
        if moment is None:
            return Sources("the line at which all rows and their labels are there was not found")
        self._at = moment
        self._known = Known(space, count, rows_of, trained, only, labels)
        # The later half: a row before all of them cannot depend on them in a process over time.
        rows = only[len(only) // 2 :]
        features = [v for v, _ in self._feature_tables(space, count, labels)]
        self.unwoven = unwoven(self._versions, features, self._aligned(space), rows, trained)
        changed = set(rows)
        self.evaluated_names = {
            self._versions[v].name
            for v in whole
            if self._versions[v].count != count and changed & set(self._base[v].tolist())
        }
        of_row = {h: i for h, i in rows_of.items() if h in self._seen["train"]}
        table = self._table_moment(space, count, labels, moment)
        together = moment.together and self._holds_inputs(self._known, moment)
        return Sources(
            place=replace(moment, together=together),
            table=table if table and self._holds_inputs(self._known, table) else None,
            count=count,
            trained=len(trained),
            evaluated=len(only),
            rows=tuple(rows),
            early=tuple(h for h, i in of_row.items() if 0 <= i < rows[0]),
        )

    def strangers(self) -> list[StrangerRows]:
        """Columns by which evaluated rows have relatives, or later ones, among those trained on."""
        known = self._known
        if known is None:
            return []
        inputs = self._inputs(known)
        marked = set(known.labels)
        columns = [
            Column(
                version.rows.names[c] if version.rows.names else version.name,
                version.rows.numbers[:, c],
                c in version.rows.dates,
                bool(version.rows.names),
            )
            for v, version in self._wholes(known.space, known.count)
            if not version.is_remade  # it was still being filled
            for c in range(min(version.rows.numbers.shape[1], MAX_COLUMNS))
            if (v, c) not in marked
        ]
        return find_strangers(
            columns,
            inputs,
            self._label_values(),
            sorted(known.trained),
            known.evaluated,
            is_series=self._is_series(),
            in_order=self._is_series() and is_interleaved(sorted(known.trained), known.evaluated),
        )

    def answers_met(self) -> tuple[int, int] | None:
        """For a series: (rows that are asked for what training rows are given, rows looked at)."""
        known = self._known
        if known is None or not known.labels or not self._is_series():
            return None
        parts = self._aligned(known.space)
        return answers_met(self._versions, known.labels, parts, known.evaluated, known.trained)

    def _inputs(self, known: Known) -> Numbers:
        """What the model is given for each row of the source; NaN for rows it never met."""
        met = {h for rows in self._seen.values() for h in rows}
        places = {i: h for h, i in known.rows_of.items() if i >= 0 and h in met}
        inputs = np.full((known.count, self._width), np.nan, np.float32)
        for v, version in enumerate(self._versions):
            if version.rows.numbers.shape[1] == self._width and self._space[v] == known.space:
                base = self._base[v]
                kept = [k for k, i in enumerate(base.tolist()) if 0 <= i < known.count]
                right = [k for k in kept if places.get(int(base[k])) == int(version.rows.hashes[k])]
                inputs[base[right]] = version.rows.numbers[right]
        return inputs

    def _holds_inputs(self, known: Known, place: Place) -> bool:
        """Whether what the model is given is there already, and not made from it later on: a table
        of labels and who they belong to is the beginning of made-up data.
        """
        inputs = self._inputs(known)
        given = [inputs[:, i] for i in range(min(inputs.shape[1], MAX_GIVEN))]
        marked, met = set(known.labels), set(known.rows_of)
        for v, version in self._wholes(known.space, known.count):
            if version.name not in place.names or version.file != place.file:
                continue
            if version.line > place.line and version.code.co_name == place.function:
                continue
            if met & set(version.rows.hashes[:MAX_GIVEN].tolist()):
                return True
            columns = range(min(version.rows.numbers.shape[1], COLUMNS_ASKED))
            if any(
                is_given(version.rows.numbers[:, c], given) for c in columns if (v, c) not in marked
            ):
                return True
        return False

    def filled(self) -> FilledColumns | None:
        """Columns that the model is given and that are filled in for one class alone."""
        known, labels, at = self._known, self._label_values(), self._at
        if known is None or labels is None or at is None:
            return None
        inputs = self._inputs(known)
        given = [inputs[:, i] for i in range(min(inputs.shape[1], MAX_GIVEN))]
        marked = set(known.labels)
        names: dict[tuple[str, int], str] = {}
        most = 0
        for v, version in self._wholes(known.space, known.count):
            if version.name not in at.names or version.file != at.file:
                continue
            for c in range(min(version.rows.numbers.shape[1], MAX_COLUMNS)):
                values = version.rows.numbers[:, c]
                rows = 0 if (v, c) in marked else is_filled_for_one_class(values, labels)
                if rows and is_given(values, given) and (version.name, c) not in names:
                    of_table = version.rows.names
                    names[version.name, c] = of_table[c] if of_table else f"{version.name}[:, {c}]"
                    most = max(most, rows)
        if not names:
            return None
        return FilledColumns(tuple(names), tuple(names.values()), most, known.count)

    def _label_values(self) -> Numbers | None:
        if self._known is None or not self._known.labels:
            return None
        v, c = self._known.labels[-1]
        return self._versions[v].rows.numbers[:, c]

    def _is_series(self) -> bool:
        known = self._known
        if known is None:
            return False
        tables = self._feature_tables(known.space, known.count, known.labels)
        return is_series([x.rows.numbers for _, x in tables], self._label_values())

    def _feature_tables(
        self, space: int, count: int, labels: Sequence[tuple[int, int]]
    ) -> list[tuple[int, Version]]:
        """Containers of all rows that hold more than their labels."""
        marked = {v for v, _ in labels}
        return [
            (v, x)
            for v, x in self._wholes(space, count)
            if not x.rows.is_text and (v not in marked or x.rows.numbers.shape[1] > 1)
        ]

    def _aligned(self, space: int) -> dict[int, Places]:
        """Containers with the number of each row: those of this space, and what has as many rows
        as one of its parts.
        """
        own = {v: self._base[v] for v in range(len(self._versions)) if self._space[v] == space}
        of_size = {len(base): base for base in own.values()}
        return {
            v: own[v] if v in own else of_size[version.count]
            for v, version in enumerate(self._versions)
            if self._space[v] >= 0 and (v in own or version.count in of_size)
        }

    def future(self, first: Collection[int]) -> Future | None:
        """For a series: the first line at which all rows are there in any form, a table before
        arrays that it may be made of, and all rows from one on, before which some of those stand
        that are evaluated `first`, by their hash. What these are made of must not change. An array
        that is still being filled is no place to change anything.
        """
        known = self._known
        if known is None or not self._is_series():
            return None
        wholes = [x for _, x in self._wholes(known.space, known.count)]
        tables = [x for x in wholes if x.rows.names and not x.rows.is_text]
        filled = [x for x in wholes if not x.is_remade]
        start = min(tables or filled or wholes, key=lambda x: (x.depth, x.event))
        names = {x.name for x in wholes if x.event == start.event and x.code is start.code}
        early = {known.rows_of.get(h, -1) for h in first}
        held = [row for row in known.evaluated if row in early] or known.evaluated
        moment = held[(len(held) - 1) // 2] + 1  # right behind one: the least look ahead is seen
        return Future(place_of(start, names), tuple(range(moment, known.count)))

    def paths(self, calls: Sequence[tuple[str, int, Sequence[int]]]) -> CopyPaths | None:
        """Rows that could be copies of one training row, two and two: some that are trained on, some
        that are only evaluated; where the model meets them; and the line that made what is evaluated.
        """
        known, labels, at = self._known, self._label_values(), self._at
        if known is None or labels is None or at is None:
            return None
        trained = met_places(calls, "train", known.rows_of, known.trained)
        evaluated = met_places(calls, "eval", known.rows_of, set(known.evaluated))
        groups = same_label_rows(labels, list(trained), list(evaluated))
        if groups is None:
            return None
        first, second, held, again = groups
        made = [
            x
            for v, x in enumerate(self._versions)
            if self._space[v] == known.space
            and x.rows.numbers.shape[1] == self._width
            and not self._is_whole(v)
            and not set(self._base[v].tolist()) & known.trained
        ]
        return CopyPaths(
            rows=(*held, *again, *second),
            taken=(*first, *first, *first),
            train=tuple(trained[i] for i in (*first, *second)),
            eval=tuple(evaluated[i] for i in (*held, *again)),
            made=Site(made[-1].file, made[-1].line, made[-1].code.co_name) if made else None,
        )

    def evaluated_rows(self) -> dict[int, int]:
        """Hash of an evaluated row -> its number."""
        known = self._known
        if known is None:
            return {}
        of_eval = {h: known.rows_of.get(h, -1) for h in self._seen["eval"]}
        return {h: i for h, i in of_eval.items() if i >= 0}

    def answers(self) -> dict[int, float]:
        """Hash of an evaluated row -> what the model should answer, as it is asked in training."""
        known, labels = self._known, self._label_values()
        if known is None or labels is None:
            return {}
        asked = [
            (labels[known.rows_of[h]], t)
            for h, t in self._seen["train"].items()
            if t is not None and known.rows_of.get(h, -1) >= 0
        ]
        column, targets = (np.array(side, np.float32) for side in zip(*asked, strict=True))
        rows = self.evaluated_rows()
        wanted = as_asked(labels[list(rows.values())], column, targets)
        return dict(zip(rows, wanted.tolist(), strict=True))

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
            for h, i in self._given.get(space, ()):
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
        alike = self._alike(space)
        pairs = [
            (rows_of[h], t)
            for h, t in self._seen["train"].items()
            if t is not None and rows_of.get(h, -1) >= 0 and h not in alike
        ]
        if len(pairs) < LEAST_TRAINED or len({t for _, t in pairs}) < 2:
            return []
        places = np.array([i for i, _ in pairs])
        values = np.array([t for _, t in pairs], np.float32)
        return [
            (v, column)
            for v, version in self._wholes(space, count)
            for column in range(min(version.rows.numbers.shape[1], 512))
            if is_answer(version.rows.numbers[places, column], values)
            or follows_answer(version.rows.numbers[places, column], values)
        ]

    def _alike(self, space: int) -> set[int]:
        """Hashes that several rows have: which of them was trained on, and with which label, is not
        known.
        """
        numbers: dict[int, int] = {}
        several: set[int] = set()
        for v, version in enumerate(self._versions):
            if self._space[v] == space and version.rows.numbers.shape[1] == self._width:
                places = self._base[v].tolist()
                for h, i in zip(version.rows.hashes.tolist(), places, strict=True):
                    if i >= 0 and numbers.setdefault(h, i) != i:
                        several.add(h)
        for h, i in self._given.get(space, ()):
            if i >= 0 and numbers.setdefault(h, i) != i:
                several.add(h)
        return several

    def _wholes(self, space: int, count: int) -> list[tuple[int, Version]]:
        """Containers of all rows, in their order."""
        return [
            (v, version)
            for v, version in enumerate(self._versions)
            if self._space[v] == space and version.count == count and self._is_whole(v)
        ]

    def _table_moment(
        self,
        space: int,
        count: int,
        labels: Sequence[tuple[int, int]],
        moment: Place,
    ) -> Place | None:
        """The first table that holds rows and labels, where it is put together later than they are
        there: until then a script may still be making its data.
        """
        column_of = dict(reversed(labels))
        tables = [
            (v, x)
            for v, x in self._wholes(space, count)
            if v in column_of and x.rows.names and x.rows.numbers.shape[1] > 1
        ]
        v, start = min(tables, key=lambda t: (t[1].depth, t[1].event), default=(-1, None))
        if start is None or (start.file, start.at) == (moment.file, moment.at):
            return None
        return place_of(start, [start.name], [(start.name, column_of[v])], together=True)

    def _moment(self, space: int, count: int, labels: Sequence[tuple[int, int]]) -> Place | None:
        """The first line, of the outermost function, before which all rows and their labels are
        there.
        """
        best: Place | None = None
        rank: tuple[int, int] | None = None
        for code in dict.fromkeys(v.code for v in self._versions):
            held = [(v, x) for v, x in self._wholes(space, count) if x.code is code]
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
                best = place_of(
                    at,
                    {x.name for v, x in there if v in dict(features)},
                    [(x.name, marked[v]) for v, x in there if v in marked],
                    together=all(x.event == start for _, x in there),
                )
        return best


def place_of(
    version: Version,
    names: Iterable[str],
    labels: Iterable[tuple[str, int]] = (),
    together: bool = False,
) -> Place:
    held = tuple(sorted(names)), tuple(labels)
    return Place(
        version.file, version.code.co_name, version.line, version.at, *held, together=together
    )


def matched(
    versions: Sequence[Version], seen: Seen, width: int, given: Sequence[Numbers] = ()
) -> tuple[Matching, Sources]:
    """With its plan, over containers none of whose rows are made of other rows."""
    while True:
        matching = Matching(versions, seen, width, given)
        plan = matching.plan()
        if matching.unwoven is None:
            return matching, plan
        versions = matching.unwoven


def _placed(placing: Placing, given: Sequence[Numbers]) -> dict[int, list[tuple[int, int]]]:
    """Space -> (hash, number) of rows that were made on the way to the model."""
    told: dict[int, list[tuple[int, int]]] = {}
    for numbers in given:
        hashes = hash_rows(numbers)
        found = placing.given(Rows(numbers, (), hashes))
        if found is not None:
            pairs = zip(hashes.tolist(), found[1].tolist(), strict=True)
            told.setdefault(found[0], []).extend(pairs)
    return told
