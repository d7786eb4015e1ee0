"""Where the training thread stands: a thread of ours looks at it a hundred times a second, and less
often once nothing was found.

Linux says of a sleeping thread in which call of the kernel it sleeps, and with which arguments. A
sleep counts as waiting for a store when two looks in a row find the thread in the same call on the
same file: what lies between them, without what the thread ran or stood in the queue for a core, is
time that the call took. A write that goes into a buffer is never seen asleep, so it costs nothing.
No frame is kept: it would keep the batch of the script alive.
"""

from __future__ import annotations

import _thread
import os
import platform
import stat
import sys
import threading
import time
from collections import defaultdict
from types import CodeType
from typing import TYPE_CHECKING

from sawbones.observe.interrupts import HOLDING
from sawbones.observe.sites import is_user_file
from sawbones.schema import Site
from sawbones.schema.standing import Standing, StandingLine, StorageWait

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

OFTEN_S, SELDOM_S = 0.01, 0.05
OFTEN_FOR_S = 20.0  # from the first step; then only for as long as something is found
FOUND_FOR_S = 5.0
LONGEST_S = 0.5  # a look that came later than this says nothing of the time before it
NOTE_S = 1.0
KEPT_STEPS = 2000
KEPT_LINES = 400
SHOWN_LINES = 24

_Line = tuple[CodeType, int]
_Call = tuple[str, int]  # its name, and the descriptor it was given

# Calls of the kernel that end when a store, a file system or the reader of a pipe has answered,
# with their numbers.
_MACHINES = ("x86_64", "aarch64")
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "write": (1, 64),
    "pwrite64": (18, 68),
    "writev": (20, 66),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "sync_file_range": (277, 84),
    "syncfs": (306, 267),
    "sync": (162, 81),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendfile": (40, 71),
    "copy_file_range": (326, 285),
    "splice": (275, 76),
    "close": (3, 57),
    "ftruncate": (77, 46),
    "fallocate": (285, 47),
    "flock": (73, 32),
    "open": (2, None),
    "openat": (257, 56),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "read": (0, 63),
    "pread64": (17, 67),
    "readv": (19, 65),
    "preadv": (295, 69),
}
_READS = {"read", "pread64", "readv", "preadv"}
# Their first argument is no descriptor of what they wait for.
_BY_PATH = {
    "sync",
    "open",
    "openat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
}


def _names() -> dict[int, str]:
    """By the number of the call, on this machine."""
    if platform.machine() not in _MACHINES:
        return {}
    column = _MACHINES.index(platform.machine())
    found = {numbers[column]: name for name, numbers in _CALLS.items()}
    return {number: name for number, name in found.items() if number is not None}


class ThreadStatus:
    """What the kernel says of one thread of this process. The files stay open, as asking a hundred
    times a second must not cost.
    """

    def __init__(self, native_id: int) -> None:
        self._names = _names()
        self._syscall = self._schedule = -1
        folder = f"/proc/self/task/{native_id}"
        try:
            self._syscall = os.open(f"{folder}/syscall", os.O_RDONLY | os.O_CLOEXEC)
            self._schedule = os.open(f"{folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            os.pread(self._syscall, 200, 0)
        except OSError:
            self.close()

    @property
    def is_readable(self) -> bool:
        return self._syscall >= 0 and bool(self._names)

    def sleeps_in(self) -> _Call | None:
        """The call on a store that it sleeps in."""
        number, _, rest = os.pread(self._syscall, 200, 0).partition(b" ")
        if not rest:
            return None  # "running"
        name = self._names.get(int(number))
        if name is None:
            return None
        descriptor = -1 if name in _BY_PATH else int(rest.split(b" ", 1)[0], 16)
        if name in _READS and not _is_file(descriptor):
            return None  # it waits for another process, not for a store
        return name, descriptor

    def wanted_core_s(self) -> float:
        """Seconds in which it ran, or could have."""
        ran, waited, *_ = os.pread(self._schedule, 200, 0).split()
        return (int(ran) + int(waited)) / 1e9

    def close(self) -> None:
        for descriptor in (self._syscall, self._schedule):
            if descriptor >= 0:
                os.close(descriptor)
        self._syscall = self._schedule = -1


class StandingLog:
    def __init__(self, recorder: Recorder, ident: int, native_id: int) -> None:
        self._r = recorder
        self._ident = ident
        self._status = ThreadStatus(native_id)
        self._first = recorder.step
        self._looks = 0
        self._lines: defaultdict[_Line, float] = defaultdict(float)
        self._waits: dict[tuple[_Line | None, str, str], tuple[float, set[int]]] = {}
        self._stalled: dict[int, float] = {}
        self._is_user: dict[CodeType, bool] = {}
        self._asleep: tuple[_Call, float] | None = None  # at the look before, core time until then
        self._looked = self._noted = time.perf_counter()
        self._often_until = self._looked + OFTEN_FOR_S
        self._stop = threading.Event()
        self._over = threading.Event()
        self._sees_calls = self._status.is_readable
        # Not a threading.Thread: a script that counts or joins its threads must not meet this one.
        _thread.start_new_thread(self._loop, ())

    def close(self) -> None:
        if os.getpid() != self._r.pid:
            return  # a fork has no such thread
        self._stop.set()
        self._over.wait(1.0)
        self.note()

    def note(self) -> None:
        sites = {key: self._r.sites.of_line(*key) for key in tuple(self._lines)}
        lines = sorted(self._lines.items(), key=lambda item: -item[1])[:SHOWN_LINES]
        waits = sorted(self._waits.items(), key=lambda item: -item[1][0])[:SHOWN_LINES]
        self._r.facts["standing"] = Standing(
            self._looks,
            self._sees_calls,
            self._first,
            tuple(StandingLine(sites[key], round(seconds, 4)) for key, seconds in lines),
            tuple(
                StorageWait(call, target, round(seconds, 4), len(steps), _at(line, sites))
                for (line, call, target), (seconds, steps) in waits
            ),
            tuple((step, round(1e3 * s, 2)) for step, s in tuple(self._stalled.items())),
        )

    def _loop(self) -> None:
        try:
            while not self._stop.wait(OFTEN_S if self._looked < self._often_until else SELDOM_S):
                self._look(time.perf_counter())
        except Exception as error:  # watching must not end training
            self._r.guard.off.add("standing")
            self._r.guard.log(f"where the training thread stands is not looked at: {error!r}")
        finally:
            self._status.close()
            self._over.set()

    def _look(self, now: float) -> None:
        passed, self._looked = now - self._looked, now
        if HOLDING.depth or passed > LONGEST_S:  # our own code, or other work had the cores
            self._asleep = None
            return
        self._looks += 1
        call = self._status.sleeps_in() if self._status.is_readable else None
        line = self._line()
        if line is not None and (line in self._lines or len(self._lines) < KEPT_LINES):
            self._lines[line] += passed
        if call is None:
            self._asleep = None
            return
        wanted = self._status.wanted_core_s()
        if self._asleep is not None and self._asleep[0] == call:
            slept = max(0.0, passed - (wanted - self._asleep[1]))
            self._slept(line, call, slept)
            self._often_until = max(self._often_until, now + FOUND_FOR_S)
        self._asleep = call, wanted
        if now - self._noted > NOTE_S:
            self._noted = now
            self.note()

    def _slept(self, line: _Line | None, call: _Call, seconds: float) -> None:
        step = self._r.step
        key = line, call[0], _target(call[1])
        if key in self._waits or len(self._waits) < KEPT_LINES:
            before, steps = self._waits.get(key, (0.0, set()))
            if len(steps) < KEPT_STEPS:
                steps.add(step)
            self._waits[key] = before + seconds, steps
        self._stalled[step] = self._stalled.get(step, 0.0) + seconds
        if len(self._stalled) > KEPT_STEPS:
            oldest = next(iter(self._stalled))
            del self._stalled[oldest]
            self._first = oldest + 1

    def _line(self) -> _Line | None:
        """The innermost line of the user's. Nothing here gives up the interpreter's lock, so that
        no frame outlives its function.
        """
        frame = sys._current_frames().get(self._ident)
        while frame is not None:
            code = frame.f_code
            user = self._is_user.get(code)
            if user is None:
                user = self._is_user[code] = is_user_file(code.co_filename)
            if user:
                return code, frame.f_lineno or code.co_firstlineno  # None between two lines
            frame = frame.f_back
        return None


def _at(line: _Line | None, sites: dict[_Line, Site]) -> Site | None:
    return sites.get(line) if line is not None else None


def _is_file(descriptor: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _target(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") if descriptor >= 0 else ""
    except OSError:
        return ""


def native_id_of(ident: int) -> int | None:
    return next((t.native_id for t in threading.enumerate() if t.ident == ident), None)
