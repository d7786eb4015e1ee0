"""How ranks compare their fingerprints while they train: notes in the key-value store that they met
at.

No collective is made: one of ours could wait for a rank that has crashed or takes fewer steps, and
could slip between two of the user's. A rank leaves its latest notes under its own key and reads
those of the rank before it, if there are any: whoever is late or gone is not waited for. Ranks that
all agree with the one before them all agree, so nothing grows with the number of ranks on any of
them. The store is asked over a connection of its own, by a thread of its own: training never waits
for an answer.

A note has a fixed size. Only when two notes differ does a rank ask the one before it for the
fingerprints of single tensors.
"""

from __future__ import annotations

import json
import struct
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sawbones.observe.tensor_prints import SKETCH, Prints

KINDS = ("parameters", "buffers", "gradients", "batches", "events", "answers")
MUST_AGREE = ("parameters", "buffers", "gradients", "events", "answers")
ROUNDING = (
    1e-4  # of a tensor's norm: ranks that compute in another order come this close and no closer
)
KEPT = 4  # notes of a rank in the store
# steps whose single fingerprints stay in memory: the first may follow each other before anyone asks
KEPT_SINGLE = 12
PREFIX = "sawbones/"
# seconds between the looks after a note was left: a busy neighbour may be late
_PAUSES = (0.03, 0.2, 1.0, 3.0, 9.0)
_PATIENCE = 20  # looks, a second each, for single fingerprints that were asked for
LINGER_SECONDS = 1.0  # at the end, for the rank before and the rank after
_FORMAT = f"<{3 + len(KINDS)}Q"
NOTE_BYTES = struct.calcsize(_FORMAT)


class Store(Protocol):
    """As much of torch's stores as is used: none of these waits for another rank."""

    def set(self, key: str, value: bytes) -> None: ...

    def check(self, keys: list[str]) -> bool: ...

    def get(self, key: str) -> bytes: ...


@dataclass(frozen=True)
class Note:
    """Fingerprints of one rank after one step. A kind that is not there was not measured."""

    step: int
    layout: int  # of names, shapes and types: notes of different models are not compared
    prints: dict[str, int]

    def pack(self) -> bytes:
        known = sum(1 << i for i, kind in enumerate(KINDS) if kind in self.prints)
        values = [self.prints.get(kind, 0) & (2**64 - 1) for kind in KINDS]
        return struct.pack(_FORMAT, self.step, self.layout & (2**64 - 1), known, *values)


def unpack_notes(data: bytes) -> list[Note]:
    found = []
    for start in range(0, len(data) - NOTE_BYTES + 1, NOTE_BYTES):
        step, layout, known, *values = struct.unpack_from(_FORMAT, data, start)
        prints = {
            kind: value
            for i, (kind, value) in enumerate(zip(KINDS, values, strict=True))
            if known >> i & 1
        }
        found.append(Note(step, layout, prints))
    return found


def same_prints(ours: Note, theirs: Note, kind: str) -> bool | None:
    """None where one of the two has not measured it."""
    if kind not in ours.prints or kind not in theirs.prints:
        return None
    return ours.prints[kind] & (2**64 - 1) == theirs.prints[kind] & (2**64 - 1)


@dataclass
class Comparison:
    """What one rank knows from the notes of the rank before it."""

    compared: int = 0
    last: int = 0  # the latest step that was compared
    same: dict[str, int] = field(
        default_factory=dict
    )  # kind -> latest step at which it was the same
    apart: dict[str, int] = field(
        default_factory=dict
    )  # kind -> a step at which it was not, to be looked at
    quiet: dict[str, int] = field(
        default_factory=dict
    )  # kind -> step before which it is not looked at again
    batches: list[int] = field(
        default_factory=lambda: [0, 0]
    )  # spans with the same batches, spans compared
    asked: int = 0  # answers to one batch that were compared

    def add(self, ours: Note, theirs: Note) -> None:
        if ours.layout != theirs.layout:
            return
        self.compared += 1
        self.last = ours.step
        for kind in MUST_AGREE:
            alike = same_prints(ours, theirs, kind)
            if alike is None or kind in self.apart or ours.step < self.quiet.get(kind, 0):
                continue
            if kind == "answers" and not same_prints(ours, theirs, "parameters"):
                continue  # other weights give other answers
            self.asked += kind == "answers"
            (self.same if alike else self.apart)[kind] = ours.step
        same_batches = same_prints(ours, theirs, "batches")
        if same_batches is not None:
            self.batches[1] += 1
            self.batches[0] += same_batches


@dataclass(frozen=True)
class Single:
    """Fingerprints of single tensors after one step."""

    step: int
    names: dict[str, list[str]]  # kind -> names
    prints: dict[str, Prints]

    def pack(self) -> bytes:
        kinds = [kind for kind in MUST_AGREE if kind in self.prints]
        head = json.dumps(
            [self.step, [[kind, len(self.prints[kind].bits)] for kind in kinds]]
        ).encode()
        body = b"".join(
            self.prints[k].bits.tobytes() + self.prints[k].numbers.tobytes() for k in kinds
        )
        return zlib.compress(struct.pack("<I", len(head)) + head + body, 1)


def unpack_single(data: bytes) -> tuple[int, dict[str, Prints]]:
    raw = zlib.decompress(data)
    (size,) = struct.unpack_from("<I", raw)
    step, kinds = json.loads(raw[4 : 4 + size])
    at, prints = 4 + size, {}
    for kind, count in kinds:
        bits = np.frombuffer(raw, np.int64, count, at)
        at += bits.nbytes
        numbers = np.frombuffer(raw, np.float64, count * (1 + SKETCH), at).reshape(
            count, 1 + SKETCH
        )
        at += numbers.nbytes
        prints[kind] = Prints(bits, numbers)
    return step, prints


def differences(
    names: Sequence[str], ours: Prints, theirs: Prints, most: int = 24, in_order: bool = False
) -> list[dict[str, Any]]:
    """Tensors that are not the same, in the order of the model: norms on either side and the
    distance by their sketches.
    """
    found = []
    for i in np.flatnonzero(ours.bits != theirs.bits).tolist()[: 20 * most]:
        (norm, *a), (other, *b) = ours.numbers[i].tolist(), theirs.numbers[i].tolist()
        distance = float(np.linalg.norm(np.array(a) - np.array(b))) / (max(norm, other) + 1e-30)
        if np.isfinite(norm) != np.isfinite(other):
            distance = np.inf
        found.append({"name": names[i], "ours": norm, "theirs": other, "distance": distance})
    # Of answers the first ones: a layer that is off makes all behind it differ.
    largest = found if in_order else sorted(found, key=lambda row: -row["distance"])
    return [row for row in found if row in largest[:most]]


def merge(
    known: dict[str, dict[str, Any]], ours: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Per kind one row: that of the pair that drifted, then of the one that was looked at last."""

    def weight(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["drifted"], row["step"], -row["rank"]

    return {
        kind: max((rows[kind] for rows in (known, ours) if kind in rows), key=weight)
        for kind in {**known, **ours}
    }


class RankChannel:
    """The thread of one rank. `found` and `comparison` may be read at any time."""

    def __init__(self, make_store: Callable[[], Store], rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.comparison = Comparison()
        self.found: dict[
            str, dict[str, Any]
        ] = {}  # kind -> where any two ranks were first seen apart
        self.error = ""
        self.wants_batch = False
        self.shared: bytes | None = None  # the batch of the first rank, for all of them
        self._offered: bytes | None = None
        self._make_store = make_store
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._singles: deque[Single] = deque(maxlen=KEPT_SINGLE)
        self._done = 0  # the latest step of which the rank before had a note, too
        self._asked: int | None = None
        self._asked_looks = 0
        self._answered = -1
        self._news = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._loop, name="sawbones-ranks", daemon=True)
        self._thread.start()

    def leave(self, note: Note, single: Single) -> None:
        self._singles.append(single)
        self._notes.append(note)
        self._news.set()

    def offer(self, batch: bytes) -> None:
        self._offered = self.shared = batch
        self._news.set()

    def close(self) -> None:
        """Waits a moment for the neighbours' last notes, then for nobody."""
        self._ending = True
        self._news.set()
        self._thread.join(LINGER_SECONDS + 1.0)

    def _loop(self) -> None:
        try:
            store = self._make_store()
            while not self._ending:
                self._news.wait()
                self._news.clear()
                if self._notes:
                    store.set(self._key("notes"), b"".join(n.pack() for n in tuple(self._notes)))
                self._share(store)
                self._watch(store)
            if self._notes:
                self._linger(store)
        except (
            Exception
        ) as error:  # the store is gone, or the rank that holds it: nothing more can be compared
            self.error = f"{type(error).__name__}: {str(error)[:200]}"

    def _share(self, store: Store) -> None:
        offered, self._offered = self._offered, None
        if offered is not None:
            store.set(PREFIX + "batch", offered)
        elif self.wants_batch and self.shared is None:
            self.shared = self._read(store, "batch")

    def _watch(self, store: Store) -> None:
        for pause in _PAUSES:
            if self._ending or self._news.wait(pause):
                return
            self._look(store)
        while self._asked is not None and not self._ending and not self._news.wait(1.0):
            self._look(store)

    def _linger(self, store: Store) -> None:
        """The last step was compared with both neighbours, and what they ask is answered."""
        until = time.monotonic() + LINGER_SECONDS
        last = self._notes[-1]
        while time.monotonic() < until:
            self._look(store)
            after = (
                self._read(store, "notes", self.rank + 1)
                if self.rank + 1 < self.world_size
                else None
            )
            theirs = (
                next((n for n in unpack_notes(after) if n.step >= last.step), None)
                if after is not None
                else None
            )
            late = self.rank + 1 < self.world_size and theirs is None
            unlike = theirs is not None and any(
                theirs.prints.get(k, 0) != last.prints.get(k, 0) & (2**64 - 1)
                for k in ("parameters", "buffers", "gradients")
            )
            asking = self._asked is not None or (unlike and self._answered < 0)
            if not late and not asking and (self.rank == 0 or last.step <= self._done):
                break
            time.sleep(0.05)
        if self._asked is not None:
            self._asked_looks = _PATIENCE
            self._resolve(store)
        self._hear(store)

    def _look(self, store: Store) -> None:
        ours = (
            {note.step: note for note in tuple(self._notes) if note.step > self._done}
            if self.rank > 0
            else {}
        )
        before = self._read(store, "notes", self.rank - 1) if ours else None
        for theirs in unpack_notes(before) if before is not None else ():
            if theirs.step in ours:
                self.comparison.add(ours[theirs.step], theirs)
                self._done = theirs.step
        self._ask(store)
        self._answer(store)
        self._resolve(store)
        self._hear(store)

    def _ask(self, store: Store) -> None:
        if self._asked is None and self.comparison.apart:
            self._asked, self._asked_looks = min(self.comparison.apart.values()), 0
            store.set(self._key("ask", self.rank - 1), str(self._asked).encode())

    def _answer(self, store: Store) -> None:
        asked = self._read(store, "ask", self.rank)
        if asked is None or int(asked) == self._answered:
            return
        single = next((s for s in tuple(self._singles) if s.step == int(asked)), None)
        if single is not None:
            self._answered = single.step
            store.set(self._key("singles"), single.pack())

    def _resolve(self, store: Store) -> None:
        """What is known of a difference goes to all ranks: with single tensors, or without them
        when no answer comes.
        """
        if self._asked is None:
            return
        self._asked_looks += 1
        answer = self._read(store, "singles", self.rank - 1)
        step, prints = unpack_single(answer) if answer is not None else (-1, {})
        if step != self._asked and self._asked_looks < _PATIENCE:
            return
        single = next((s for s in tuple(self._singles) if s.step == self._asked), None)
        for kind in [k for k, at in self.comparison.apart.items() if at == self._asked]:
            rows, num = [], 0
            if (
                single is not None
                and step == self._asked
                and kind in prints
                and kind in single.prints
                and len(prints[kind].bits) == len(single.prints[kind].bits)
            ):
                rows = differences(
                    single.names[kind],
                    single.prints[kind],
                    prints[kind],
                    in_order=kind == "answers",
                )
                num = int(np.count_nonzero(single.prints[kind].bits != prints[kind].bits))
            self._record(kind, self._asked, rows, num)
        self._asked = None
        known = self._read(store, "found")
        merged = merge(json.loads(known) if known is not None else {}, self.found)
        store.set(PREFIX + "found", json.dumps(merged).encode())

    def _record(self, kind: str, step: int, rows: list[dict[str, Any]], num: int) -> None:
        """What is no more than rounding, and buffers, which may be brought together again, are
        looked at again later.
        """
        comparison = self.comparison
        del comparison.apart[kind]
        row = self.found.get(kind)
        if row is None or row["rank"] != self.rank:
            row = {
                "rank": self.rank,
                "other": self.rank - 1,
                "first": step,
                "same": comparison.same.get(kind, -1),
                "looks": 0,
            }
        drifted = any(r["distance"] > ROUNDING for r in rows)
        self.found[kind] = {
            **row,
            "step": step,
            "tensors": rows,
            "num": num,
            "looks": row["looks"] + 1,
            "drifted": drifted,
        }
        comparison.quiet[kind] = 2 * step if kind == "buffers" or not drifted else 2**62

    def _hear(self, store: Store) -> None:
        known = self._read(store, "found")
        if known is not None:
            self.found = merge(json.loads(known), self.found)

    def _read(self, store: Store, what: str, rank: int | None = None) -> bytes | None:
        key = self._key(what, rank) if rank is not None else PREFIX + what
        return bytes(store.get(key)) if store.check([key]) else None

    def _key(self, what: str, rank: int | None = None) -> str:
        return f"{PREFIX}{what}/{self.rank if rank is None else rank}"
