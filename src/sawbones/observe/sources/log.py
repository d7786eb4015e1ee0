"""Which rows a script holds, from line to line, until it trains; which of them reach the model in
training and in evaluation; and the change of some of them on the way.

Every table, array or list of rows is hashed row by row when a line has made or changed it. A row of
a batch is found again by its hash. Containers of equal length are taken to hold the same rows in
the same order unless the hashes say otherwise.
"""

from __future__ import annotations

import hashlib
import time
import types
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sawbones.observe.sites import is_user_file
from sawbones.observe.sources.alike import are_prepared_alike
from sawbones.observe.sources.containers import (
    LEAST_ROWS,
    Hashes,
    Numbers,
    Places,
    Rows,
    change_rows,
    copy_rows,
    hash_rows,
    held_rows,
    label_column,
    read,
    scramble_columns,
    turn_labels,
)
from sawbones.observe.sources.dealt import windows_before
from sawbones.observe.sources.digests import raw_digest
from sawbones.observe.sources.given import as_rows, column_hashes, main_input
from sawbones.observe.sources.left_out import left_out
from sawbones.observe.sources.matching import matched, place_of
from sawbones.observe.sources.neighbours import neighbours
from sawbones.observe.sources.numbers_held import held_values
from sawbones.observe.sources.placing import Placing
from sawbones.observe.sources.windows import find_windows
from sawbones.observe.variables import variables_of
from sawbones.schema import Site
from sawbones.schema.sources import FollowedCall, HeldValue, KeptRow, RowChange, Sources, Windows

MAX_VERSIONS = 600
# once half of them are taken: of one line, as long as one another; more are pieces, in a loop
MAX_PIECES = 24
MAX_SECONDS = 6.0  # spent on looking, in all
LARGE, MAX_LARGE = 1 << 20, 1 << 25  # values of one large container, and of all of them together
MAX_ROWS_SEEN = 1 << 17
SOME_ROWS = 64  # of each phase whose values are looked for in what the script holds
SCORED = ("copies", "scrambled")  # changes after which the score is looked at
CALLS_COMPARED = 24
MAX_ROWS_MET = 1 << 15  # of one phase
VALUES_KEPT = 512  # of one row of one tensor


@dataclass
class Version:
    """A container of rows as a line has left it."""

    code: types.CodeType
    file: str
    line: int  # that made it
    at: int  # the line that was to come next
    name: str
    depth: int  # frames of the script below it
    rows: Rows
    event: int  # of which look: what appears together has the same
    is_remade: bool = False  # in place, by a later line
    is_rewritten: bool = False  # made in place of an earlier one

    @property
    def count(self) -> int:
        return len(self.rows.hashes)


@dataclass
class Call:
    phase: str
    hashes: Hashes
    columns: list[int]
    is_real: bool
    targets: list[float] | None = None


class SourceLog:
    def __init__(self, shown: Callable[[str], str], change: RowChange | None = None) -> None:
        self._shown = shown
        self._change = change
        self._changed: list[str] = []
        self.done = False  # the first training call has come: nothing enters any more
        self.why = ""  # nothing was looked at, or not to the end
        self.is_loss_by_hand = False  # targets are only seen operator by operator
        self._versions: list[Version] = []
        self._known: dict[tuple[Any, int], tuple[Any, bytes, int]] = {}
        self._raw: dict[tuple[Any, int], int] = {}
        self._large = 0
        self._pieces: Counter[tuple[types.CodeType, int, int]] = Counter()
        self._filled: dict[tuple[Any, int], int] = {}  # large ones -> their version
        self._values: dict[tuple[Any, str], bytes] = {}
        # where, name, digest of a value or number of a version, caller
        self._trace: list[tuple[Site, str, str | int, Site | None]] = []
        self._spent = 0.0
        self._events = 0
        self._calls: list[Call] = []
        self._numbers = {"train": 0, "eval": 0}
        self._met: list[tuple[str, int, list[int]]] = []  # phase, number of the call, rows
        self._first_met: dict[str, set[int]] = {"train": set(), "eval": set()}
        self._kept: list[KeptRow] = []
        self._evaluated_after_training = False
        # in the first evaluation: a trial that changes later rows goes no further
        self._first_evaluated: set[int] = set()
        self._is_first = True
        self._seen: dict[str, dict[int, float | None]] = {"train": {}, "eval": {}}
        self._first_asked: dict[int, float] = {}  # of several values, row by row
        self._again: set[int] = set()  # rows that are evaluated after they were trained on
        self._width: int | None = None
        self._latest: Call | None = None
        self._given: list[Numbers] = []  # to the model at once, in evaluation
        self._some: dict[str, list[Numbers]] = {"train": [], "eval": []}  # of the first rows
        self._trained: list[weakref.ref[Any]] = []  # models
        self._is_next_fold = False  # another model is trained, after an evaluation

    # lines

    def look(self, frame: types.FrameType, line: int, depth: int) -> None:
        """`line` has been executed in this frame, and the frame stands before its next one."""
        if self.done or self.why:
            return
        began = time.thread_time()  # how busy the machine is must not decide what is seen
        scope = variables_of(frame)
        if self._change is not None:
            self._apply(frame, scope)
        self._events += 1
        looked_at: set[int] = set()
        for name, value in held_rows(scope):
            if id(value) not in looked_at:  # under several names it is one container
                looked_at.add(id(value))
                self._note(frame, line, depth, name, value)
        for name, small in held_values(scope):
            digest = _digest(small)
            key = (frame.f_code, name)
            if self._values.get(key) != digest:
                self._values[key] = digest
                site = self._site(frame, line)
                self._trace.append((site, name, digest.hex(), self._caller(frame)))
        self._spent += time.thread_time() - began
        if self._spent > MAX_SECONDS or len(self._versions) > MAX_VERSIONS:
            self.why = "the script holds more data than could be followed line by line"

    def _note(self, frame: types.FrameType, line: int, depth: int, name: str, value: Any) -> None:
        key = (frame.f_code, id(value))
        raw = raw_digest(value)
        if raw is not None and key in self._known and self._raw.get(key) == raw:
            return
        rows = read(value)
        if rows is None:
            return
        if raw is not None:
            self._raw[key] = raw
        if rows.numbers.size > LARGE and not self._has_room(key, rows):
            return
        digest = _digest(rows.hashes)
        is_rewritten = key in self._known
        if is_rewritten:
            if self._known[key][1] == digest:
                return
            self._versions[self._known[key][2]].is_remade = True
        if self._are_pieces((frame.f_code, line, len(rows.hashes))):
            return
        # held, so that its id is not given to another
        self._known[key] = (value, digest, len(self._versions))
        site = self._site(frame, line)
        self._trace.append((site, name, len(self._versions), self._caller(frame)))
        where = frame.f_code, site.file, line, frame.f_lineno, name, depth
        self._versions.append(Version(*where, rows, self._events, is_rewritten=is_rewritten))

    def _are_pieces(self, key: tuple[types.CodeType, int, int]) -> bool:
        """Whether a line has made so many containers of this length that it is one of those that a
        script makes its data of, piece by piece: the whole comes later, at another length.
        """
        self._pieces[key] += 1
        return self._pieces[key] > MAX_PIECES and len(self._versions) > MAX_VERSIONS // 2

    def _has_room(self, key: tuple[Any, int], rows: Rows) -> bool:
        """Whether a large container is noted by itself. One that is filled row by row is noted
        once, as it is in the end; one that holds the same rows in another order once more.
        """
        if key in self._filled and not _is_reordered(self._versions[self._filled[key]].rows, rows):
            self._versions[self._filled[key]].rows = rows
            return False
        self._large += rows.numbers.size
        if self._large > MAX_LARGE:
            return False
        self._filled[key] = len(self._versions)
        return True

    def _site(self, frame: types.FrameType, line: int) -> Site:
        return Site(self._shown(frame.f_code.co_filename), line, frame.f_code.co_name)

    def _caller(self, frame: types.FrameType) -> Site | None:
        """The line of the script's own code that called this."""
        outer = frame.f_back
        while outer is not None and not is_user_file(outer.f_code.co_filename):
            outer = outer.f_back
        return None if outer is None else self._site(outer, outer.f_lineno)

    def _apply(self, frame: types.FrameType, scope: Mapping[str, Any]) -> None:
        change = self._change
        if change is None or self._changed or frame.f_lineno != change.place.at:
            return
        if (
            frame.f_code.co_name != change.place.function
            or self._shown(frame.f_code.co_filename) != change.place.file
        ):
            return
        rows = np.array(change.rows, np.int64)
        for name, value in held_rows(scope):
            seen = read(value)
            if seen is None or len(seen.hashes) != change.count:
                continue
            if change.what == "features" and name in change.place.names:
                if change_rows(value, rows, change.only_reals):
                    self._changed.append(name)
            elif change.what == "copies":
                if copy_rows(value, rows, np.array(change.taken, np.int64)):
                    self._changed.append(name)
            elif change.what == "scrambled":
                columns = [column for held, column in change.columns if held == name]
                if columns and scramble_columns(value, columns):
                    self._changed.append(name)
            elif change.what in ("labels", "neighbours"):
                for label, column in change.place.labels:
                    if name == label and _turn(change, value, column, rows):
                        self._changed.append(name)

    # the model

    def called(
        self,
        found: Sequence[tuple[str, Any]],
        phase: str,
        loaded: Sequence[Any],
        model: Any = None,
    ) -> None:
        """A top-level model call began with these tensors; `loaded`: those that a loader gave."""
        self._latest = None
        if phase == "train":
            self.done = True
            self._is_first = not self._first_evaluated
            self._known.clear()
            if self._is_new(model):
                self._is_next_fold |= self._evaluated_after_training
                self._trained.append(weakref.ref(model))
        if self._is_next_fold:
            return
        given = main_input(found)
        if given is None or phase not in self._seen:
            return
        numbers = as_rows(given)
        if numbers is None or (self._width is not None and numbers.shape[1] != self._width):
            return
        self._width = numbers.shape[1]
        if sum(map(len, self._some[phase])) < SOME_ROWS:
            self._some[phase].append(numbers[:SOME_ROWS].copy())
        call = Call(phase, hash_rows(numbers), column_hashes(numbers), given.is_floating_point())
        self._latest = call
        self._evaluated_after_training |= phase == "eval" and self.done
        known = self._seen[phase]
        if phase == "eval":
            self._again.update(h for h in call.hashes.tolist() if h in self._seen["train"])
        if phase == "eval" and len(numbers) >= LEAST_ROWS and self._is_worth_keeping(call):
            self._given.append(numbers.copy())
        if len(known) < MAX_ROWS_SEEN:
            known.update((h, known.get(h)) for h in call.hashes.tolist())
        of_phase = sum(c.phase == phase for c in self._calls)
        early = phase == "eval" or not self._evaluated_after_training
        if of_phase < CALLS_COMPARED and early and self.done:
            self._calls.append(call)
            if phase == "eval" and self._is_first:
                self._first_evaluated.update(call.hashes.tolist())
        if early and self.done:
            self._meet(call, found)
        for tensor in loaded:
            if all(tensor is not t for _, t in found) and self._take_target(call, tensor):
                return

    def _meet(self, call: Call, found: Sequence[tuple[str, Any]]) -> None:
        """Which rows are met in which call, and all that the model is given for those that the
        change asks for.
        """
        number, size = self._numbers[call.phase], len(call.hashes)
        self._numbers[call.phase] += 1
        if self._change is None:
            known, hashes = self._first_met[call.phase], call.hashes.tolist()
            # the same rows epoch for epoch must not crowd out those that are evaluated at the end
            if len(known) < MAX_ROWS_MET and not known.issuperset(hashes):
                known.update(hashes)
                self._met.append((call.phase, number, hashes))
            return
        asked = self._change.kept.get(call.phase, ())
        given = [t for _, t in found if t.dim() and t.shape[0] == size and not t.is_complex()]
        for place in (place for of_call, place in asked if of_call == number and place < size):
            rows = [t[place].detach().reshape(-1)[:VALUES_KEPT] for t in given]
            values = tuple(tuple(row.double().tolist()) for row in rows)
            self._kept.append(KeptRow(call.phase, number, place, values))

    def _is_worth_keeping(self, call: Call) -> bool:
        """Rows that were not met before, as long as there is room."""
        kept = sum(g.size for g in self._given)
        is_known = any(h in seen for seen in self._seen.values() for h in call.hashes[:1].tolist())
        return not is_known and kept + len(call.hashes) * (self._width or 0) <= LARGE

    def _is_new(self, model: Any) -> bool:
        """Trained for the first time. Rows that one model is evaluated on train the next one."""
        return model is not None and all(known() is not model for known in self._trained)

    @property
    def waits(self) -> bool:
        here = self._latest
        return here is not None and here.phase == "train" and here.targets is None

    def asked(self, target: Any) -> None:
        """A loss was given this target for the latest model call."""
        if self._latest is not None and self._latest.targets is None:
            self._take_target(self._latest, target)

    def _take_target(self, call: Call, target: Any) -> bool:
        if target.device.type != "cpu":
            return False
        if target.numel() != len(call.hashes):
            self._take_first(call, target)
            return False
        values = target.detach().reshape(-1).float().tolist()
        call.targets = values
        if len(self._seen[call.phase]) < MAX_ROWS_SEEN:
            self._seen[call.phase].update(zip(call.hashes.tolist(), values, strict=True))
        return True

    def _take_first(self, call: Call, target: Any) -> None:
        """Of several values that are asked for each row: the next hours of a series."""
        several = target.dim() >= 2 and target.shape[0] == len(call.hashes) and target.numel()
        if several and target.is_floating_point() and len(self._first_asked) < MAX_ROWS_SEEN:
            values = target.detach().reshape(len(target), -1)[:, 0].float().tolist()
            self._first_asked.update(zip(call.hashes.tolist(), values, strict=True))

    # the end

    def record(self) -> Sources:
        # what a script holds may be memory that it has not written to yet
        with np.errstate(all="ignore"):
            return self._record()

    def _record(self) -> Sources:
        calls, change = tuple(_followed(c) for c in self._calls), self._change
        if change is not None:
            return Sources(
                self.why,
                calls=calls,
                trace=self._traced(change.rows, change.count),
                answer_of=self._answers() if change.what in SCORED else {},
                changed=tuple(self._changed),
                kept=tuple(self._kept),
            )
        if self.why:
            return Sources(self.why)
        matching, plan = matched(self._versions, self._seen, self._width or 0, self._given)
        plan = replace(
            plan, left_out=left_out(self._versions, set(self._seen["train"]), self._again)
        )
        placing = Placing(self._versions)
        plan = replace(
            plan,
            by_hand=self.is_loss_by_hand,
            calls=calls,
            windows=self._windows_of_a_series(placing),
            is_prepared_alike=self._is_prepared_alike(placing),
            dealt=windows_before(self._versions, placing, self._seen, self._width or 0),
        )
        if plan.why:
            return plan
        strangers, filled = tuple(matching.strangers()), matching.filled()
        future = matching.future(self._first_evaluated)
        if future is not None:
            future = replace(future, trace=self._traced(future.rows, plan.count))
        return replace(
            plan,
            trace=self._traced(plan.rows, plan.count, matching.evaluated_names),
            future=future,
            paths=matching.paths(self._met),
            strangers=strangers,
            filled=filled,
            row_of=matching.evaluated_rows() if strangers or future else {},
            answer_of=matching.answers() if strangers or filled else {},
            answers_met=matching.answers_met(),
        )

    @property
    def versions(self) -> Sequence[Version]:
        """What the script held, line by line, until it trained."""
        return () if self.why else self._versions

    def _is_prepared_alike(self, placing: Placing) -> bool:
        if not all(self._some.values()):
            return False
        trained, evaluated = (np.concatenate(self._some[phase]) for phase in ("train", "eval"))
        return are_prepared_alike(self._versions, placing, trained, evaluated)

    def _windows_of_a_series(self, placing: Placing) -> Windows | None:
        seen = {
            phase: {h: self._first_asked.get(h) if t is None else t for h, t in rows.items()}
            for phase, rows in self._seen.items()
        }
        found = find_windows(
            self._versions,
            placing,
            seen,
            self._width or 0,
            self._given,
            self._first_evaluated,
        )
        if found is None:
            return None
        return Windows(
            place_of(found.start, found.names),
            found.start.count,
            found.rows,
            found.early,
            found.row_of,
            found.ahead,
            self._traced(found.rows, found.start.count, found.holders),
        )

    def _answers(self) -> dict[int, float]:
        matching, plan = matched(self._versions, self._seen, self._width or 0, self._given)
        return {} if plan.why else matching.answers()

    def _traced(
        self, rows: Sequence[int], count: int, evaluated: Collection[str] = ()
    ) -> tuple[HeldValue, ...]:
        """`evaluated`: names of variables that hold none but evaluated rows."""
        places = np.array(rows, np.int64)
        out = []
        for site, name, held, caller in self._trace[:2000]:
            kind, digest, kept = "value", held, ""
            if isinstance(held, int):
                hashes = self._versions[held].rows.hashes
                kind, digest = "rows", _digest(hashes).hex()
                if len(hashes) == count:
                    kept = _digest(np.delete(hashes, places)).hex()
            kind = "evaluated" if name in evaluated else kind
            out.append(HeldValue(site, name, kind, str(digest), kept, caller))
        return tuple(out)


def _followed(call: Call) -> FollowedCall:
    targets = None if call.targets is None else tuple(call.targets)
    rows = tuple(call.hashes.tolist())
    return FollowedCall(call.phase, rows, tuple(call.columns), call.is_real, targets)


def _digest(values: Any) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).digest()


def _is_reordered(before: Rows, after: Rows) -> bool:
    return np.array_equal(np.sort(before.hashes), np.sort(after.hashes))


def _turn(change: RowChange, value: Any, column: int, rows: Places) -> bool:
    if change.what == "labels":
        return turn_labels(value, column, rows, np.roll(rows, 1))
    labels = label_column(value, column)
    return labels is not None and turn_labels(value, column, *neighbours(labels, rows))
