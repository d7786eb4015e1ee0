"""Ranks that wait for each other: one thread per rank looks once a second whether its training
still moves.

A rank that stands still writes where it stands into a file of the run folder, every two seconds; a
rank that moves writes nothing. It is a hang when every rank that is left waits inside a distributed
call, none of them uses its processor or has made any progress for 15 seconds, and they do not wait
for the same thing, or one of them has ended. A rank that loads data, evaluates or writes files for
minutes is outside of any distributed call, so the others may wait for it. Then the ranks say where
they stand and end.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.masking import mask
from sawbones.schema import Ending, Site
from sawbones.schema.ranks import Position
from sawbones.store.codec import from_plain
from sawbones.store.opening import read_only
from sawbones.store.private import make_private_file
from sawbones.store.ring import Ring, stacks_path

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

HANG = "hang.json"  # written by the rank that found it
LOOK_SECONDS = 1.0
BEAT_SECONDS = 2.0
SILENT_SECONDS = 5.0  # without progress, before a rank says where it stands
HANG_SECONDS = 15.0
FRESH_SECONDS = 8.0  # an older position counts only of a rank that has ended
BUSY_SHARE = 0.2  # of a processor: the main thread computes
LEAVE_SECONDS = 3.0  # after the verdict, so that every rank has read it
LAST_EVENTS = 6
EXIT_STATUS = 1
_WAITS = tuple(
    os.sep + os.path.join("torch", *parts)
    for parts in (("distributed", ""), ("nn", "parallel", ""), ("autograd", ""))
)


class Watchdog:
    def __init__(self, recorder: Recorder, world_size: int) -> None:
        self._r = recorder
        self._world = world_size
        self._folder = recorder.folder
        self._main = threading.main_thread().ident or 0
        self._stop = threading.Event()
        self._moved = time.monotonic()
        self._mark: tuple[Any, ...] = ()
        self._busy_s = 0.0
        self._wrote = 0.0
        self.collective: tuple[str, Any] | None = None  # that the main thread is in, with its shape
        self.num_collectives = 0
        self._ring = Ring(self._folder, recorder.rank)
        self._path(recorder.rank).unlink(missing_ok=True)
        (self._folder / HANG).unlink(missing_ok=True)
        self._stacks: Any = None
        if (
            not faulthandler.is_enabled()
        ):  # a mismatch makes gloo abort the process: what all threads did is then written there
            self._stacks = make_private_file(stacks_path(self._folder, recorder.rank)).open(
                "w", encoding="utf-8"
            )
            faulthandler.enable(self._stacks)
        self._thread = threading.Thread(target=self._loop, name="sawbones-watchdog", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def inside(
        self,
        op: str,
        shape: Any,
        site: Site | None = None,
        counts: bool = True,
        callers: Sequence[Any] = (),
    ) -> Iterator[None]:
        """A distributed call of the main thread."""
        outer = self.collective
        self.collective = outer or (op, shape)
        if counts:
            self._ring.write(self.num_collectives, op, shape, self._r.step, site, callers)
            self.num_collectives += 1
        try:
            yield
        finally:
            self.collective = outer

    def close(self) -> None:
        """The script has ended on this rank: others may still wait for it."""
        self._stop.set()
        if self._stacks is not None:
            faulthandler.disable()
            self._stacks.close()
            stacks_path(self._folder, self._r.rank).unlink(missing_ok=True)
        if threading.current_thread() is not self._thread:
            self._write({**self._position(None), "ended": True})

    def _path(self, rank: int) -> Path:
        return self._folder / f"stands-rank{rank}.json"

    def _loop(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:  # watching must not end training
                self._r.guard.fail("watchdog", error)
                return

    def _look(self) -> None:
        now = time.monotonic()
        if os.getpid() != self._r.pid:
            self._stop.set()
            return
        frame = sys._current_frames().get(self._main)
        mark = (self._r.seq, self._r.step, self._r.microstep, self.num_collectives)
        busy_s = _thread_seconds(self._main)
        computes = busy_s - self._busy_s > BUSY_SHARE * LOOK_SECONDS
        self._busy_s = busy_s
        if mark != self._mark or computes or frame is None or not self._waits(frame):
            self._mark, self._moved = mark, now
            if self._wrote:  # what was said before holds no longer
                self._path(self._r.rank).unlink(missing_ok=True)
                self._wrote = 0.0
            return
        still = now - self._moved
        if still > SILENT_SECONDS and now - self._wrote > BEAT_SECONDS:
            self._wrote = now
            self._write({**self._position(frame), "still": still})
        if still > HANG_SECONDS:
            self._judge()

    def _waits(self, frame: Any) -> bool:
        if self.collective is not None:
            return True
        current = frame
        while current is not None:
            if any(part in current.f_code.co_filename for part in _WAITS):
                return True
            current = current.f_back
        return False

    def _position(self, frame: Any) -> dict[str, Any]:
        site = self._r.sites.find(frame) if frame is not None else None
        op, shape = self.collective or ("", None)
        return {
            "rank": self._r.rank,
            "pid": os.getpid(),
            "time": time.time(),
            "op": op or _distributed_call(frame),
            "shape": shape,
            "collectives": self.num_collectives,
            "step": self._r.step,
            "site": _plain(site),
            "ended": False,
            "last": self._last_events(),
        }

    def _last_events(self) -> list[list[Any]]:
        self._r.writer.flush()
        try:
            db = sqlite3.connect(read_only(self._r.writer.path), uri=True, timeout=1.0)
            rows = db.execute(
                f"SELECT kind, step, file, line FROM events ORDER BY seq DESC LIMIT {LAST_EVENTS}"
            ).fetchall()
            db.close()
        except sqlite3.Error:
            return []
        return [list(row) for row in reversed(rows)]

    def _write(self, position: Mapping[str, Any]) -> None:
        path = self._path(self._r.rank)
        try:
            temporary = make_private_file(path.with_suffix(".tmp"))
            temporary.write_text(mask(json.dumps(position, default=str)), encoding="utf-8")
            temporary.replace(path)
        except OSError:
            pass  # a full disk must not end the watch over everything else

    def _judge(self) -> None:
        said = self._folder / HANG
        if said.exists():
            known = json.loads(said.read_text(encoding="utf-8"))
            self._end(known["ranks"], known["leave"], tell=False)
            return
        positions = [_read(self._path(rank)) for rank in range(self._world)]
        if (
            is_hang(positions, time.time())
            and min(p["rank"] for p in positions if p and not p["ended"]) == self._r.rank
        ):
            found = [p for p in positions if p is not None]
            temporary = make_private_file(said.with_suffix(".tmp"))
            leave = time.time() + LEAVE_SECONDS
            temporary.write_text(json.dumps({"ranks": found, "leave": leave}), encoding="utf-8")
            temporary.replace(said)
            self._end(found, leave, tell=True)

    def _end(self, positions: list[dict[str, Any]], leave: float, tell: bool) -> None:
        """Writes what is known and ends this process: its main thread waits for something that
        never comes.

        All ranks leave at one moment: whoever is left alone would print a traceback about the
        others.
        """
        recorder = self._r
        if tell:
            recorder.guard.say(describe(positions))
        recorder.facts["hang"] = [from_plain(Position, position) for position in positions]
        recorder.deep, recorder.journal = None, None  # they belong to the main thread
        recorder.options = replace(recorder.options, journal=False)
        mine = next((p.site for p in recorder.facts["hang"] if p.rank == recorder.rank), None)
        recorder.close(Ending("hang", EXIT_STATUS, message=describe(positions), site=mine))
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(max(0.0, leave - time.time()))
        os._exit(EXIT_STATUS)


def is_hang(positions: list[dict[str, Any] | None], now: float) -> bool:
    """Of all ranks: every one has ended or stands still in a distributed call, and they do not
    stand at the same one.
    """
    if any(p is None for p in positions):
        return False
    known = [p for p in positions if p is not None]
    alive = [p for p in known if not p["ended"] and _is_alive(p["pid"])]
    if not alive or any(
        now - p["time"] > FRESH_SECONDS or p.get("still", 0) < HANG_SECONDS - BEAT_SECONDS
        for p in alive
    ):
        return False
    places = {(p["op"], p["collectives"], json.dumps(p["shape"])) for p in alive}
    return len(alive) < len(known) or len(places) > 1


def describe(positions: list[dict[str, Any]]) -> str:
    still = max((p.get("still", 0.0) for p in positions), default=0.0)
    lines = [f"the ranks wait for each other for {still:.0f} s and cannot go on; ending them."]
    for p in sorted(positions, key=lambda p: int(p["rank"])):
        site = p.get("site")
        at = f" at {site['file']}:{site['line']}: {site['code']}" if site else ""
        shape = f" of {p['shape']}" if p.get("shape") else ""
        doing = (
            "has ended" if p["ended"] else f"waits in {p['op'] or 'a distributed call'}{shape}{at}"
        )
        last = ", ".join(
            f"{kind} {file}:{line}" if file else kind for kind, _, file, line in p["last"][-4:]
        )
        lines.append(
            f"  rank {p['rank']}, step {p['step']}, after {p['collectives']} collectives: "
            f"{doing}. Last: {last or 'nothing'}"
        )
    return "\n".join(lines)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        return None


def _is_alive(pid: int) -> bool:
    """On this machine. Of a rank elsewhere it cannot be said, so it counts as alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _thread_seconds(ident: int) -> float:
    """Processor time of one thread."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))
    except (AttributeError, OSError):
        return 0.0


def _distributed_call(frame: Any) -> str:
    """The outermost function of torch that waits: what the user called."""
    name, current = "", frame
    while current is not None:
        if any(part in current.f_code.co_filename for part in _WAITS):
            name = current.f_code.co_name
        current = current.f_back
    return name


def _plain(site: Site | None) -> dict[str, Any] | None:
    return (
        {"file": site.file, "line": site.line, "function": site.function, "code": site.code}
        if site is not None
        else None
    )
