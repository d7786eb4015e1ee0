"""The supervisor: a thread beside the bench that answers the rare calls of one child and of all it
starts.

It stands in the bench's process since some systems (Yama) let only an ancestor read what a process
was given. It never waits for the child, and whatever it cannot judge it refuses. If it ends before
the child does, waiting calls fail with "Function not implemented" and the child is ended.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence

from sawbones.isolation.calls import NOTICE_BYTES, Call
from sawbones.isolation.rulings import GO_ON, Answer
from sawbones.isolation.supervised import GO_ON as MAY_START
from sawbones.isolation.supervised import NOWHERE, TRY
from sawbones.isolation.syscalls import ATTRIBUTES, names

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE = 1
_SYS_PIDFD_GETFD = 438  # on every architecture
_TRY_SECONDS = 20.0

Judge = Callable[[Call], Answer]
Note = Callable[[Answer], None]

_libc = ctypes.PyDLL(None, use_errno=True)  # see calls.py


class Supervisor:
    """`judge_of`, given the child's number, makes what is asked about every call that waits;
    `note` hears of those that were refused. `skipped`: calls that it is not asked about.
    """

    def __init__(
        self,
        judge_of: Callable[[int], Judge],
        note: Note | None = None,
        skipped: Iterable[str] = (),
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._judge_of = judge_of
        self._skipped = tuple(skipped)
        self._at_end = at_end
        self._note = note
        self._channel, self._theirs = socket.socketpair()
        self._stopping, self._stop = os.pipe()
        self._thread: threading.Thread | None = None
        self.failure = ""  # why there is no supervisor any more, or never was one

    def command(self, arguments: Sequence[str]) -> list[str]:
        """What to start with `-m` in place of these arguments, with `kept_open` open."""
        channel = str(self._theirs.fileno())
        return ["sawbones.isolation.supervised", channel, ",".join(self._skipped), *arguments]

    @property
    def kept_open(self) -> tuple[int, ...]:
        return (self._theirs.fileno(),)

    def start(self, child: int) -> None:
        self._theirs.close()
        work = threading.Thread(target=self._work, args=(child,), daemon=True, name="supervisor")
        self._thread = work
        work.start()

    def close(self) -> None:
        """When the child has ended; a process of it that is still there gets errors from now on."""
        if self._stop < 0:
            return
        os.write(self._stop, b"x")
        if self._thread is not None:
            self._thread.join()
        self._theirs.close()
        self._channel.close()
        for number in (self._stop, self._stopping):
            os.close(number)
        self._stop = self._stopping = -1
        if self._at_end is not None:
            self._at_end()

    def _work(self, child: int) -> None:
        listener = -1
        try:
            listener = self._listener_of(child)
            if listener >= 0:
                self._answer_all(listener, self._judge_of(child))
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            _kill(child)
        finally:
            if listener >= 0:
                os.close(listener)

    def _listener_of(self, child: int) -> int:
        """-1 where the child has ended, or could not install its filter."""
        if not self._is_ready(self._channel.fileno()):
            return -1
        said = self._channel.recv(200)
        if not said.isdigit():
            self.failure = said.decode("utf-8", "replace")
            return -1
        process = os.pidfd_open(child)
        try:
            listener = int(_libc.syscall(_SYS_PIDFD_GETFD, process, int(said), 0))
        finally:
            os.close(process)
        if listener < 0:
            raise OSError(ctypes.get_errno(), f"its calls: {os.strerror(ctypes.get_errno())}")
        self._channel.send(MAY_START)
        return listener

    def _is_ready(self, number: int) -> bool:
        """Waits; False when there is nothing more to wait for."""
        waiting = select.poll()
        waiting.register(number, select.POLLIN)
        waiting.register(self._stopping, select.POLLIN)
        ready = dict(waiting.poll())
        return bool(ready.get(number, 0) & select.POLLIN)

    def _answer_all(self, listener: int, judge: Judge) -> None:
        known = names()
        notice = ctypes.create_string_buffer(NOTICE_BYTES)
        while self._is_ready(listener):
            ctypes.memset(notice, 0, NOTICE_BYTES)
            if _libc.ioctl(listener, ctypes.c_ulong(_RECEIVE), notice) != 0:
                if ctypes.get_errno() in (errno.ENOENT, errno.EINTR):
                    continue  # the caller was interrupted before we looked
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            self._answer(listener, judge, Call(notice.raw, known))

    def _answer(self, listener: int, judge: Judge, call: Call) -> None:
        try:
            found = judge(call)
        except Exception:  # memory that cannot be read, a process that is gone
            found = Answer(errno.EACCES)
        one = ctypes.create_string_buffer(struct.pack("=Q", call.id))
        # Only now is it sure that all was read from the process that asked, and not from a later
        # one with its number.
        if _libc.ioctl(listener, ctypes.c_ulong(_IS_VALID), one) != 0:
            return
        if found.what and self._note is not None:
            self._note(found)
        flags = _CONTINUE if found.error == GO_ON else 0
        answer = struct.pack("=QqiI", call.id, 0, -found.error, flags)
        _libc.ioctl(listener, ctypes.c_ulong(_SEND), ctypes.create_string_buffer(answer))


def refusal() -> str:
    """Why calls cannot be supervised here; empty where they can. Tries it on a child of its own."""
    if not sys.platform.startswith("linux"):
        return f"no seccomp on {sys.platform}"
    supervisor = Supervisor(lambda _: _judge_a_try)
    try:
        with subprocess.Popen(
            [sys.executable, "-m", *supervisor.command([TRY])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=supervisor.kept_open,
        ) as child:
            supervisor.start(child.pid)
            try:
                status = child.wait(_TRY_SECONDS)
            finally:
                child.kill()
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        supervisor.close()
    if status == 0:
        return ""
    return supervisor.failure or f"seccomp: the trial ended with status {status}"


def _judge_a_try(call: Call) -> Answer:
    place = ATTRIBUTES.get(call.name)
    is_asked = place is not None and call.place(place) == NOWHERE
    return Answer(errno.EPERM if is_asked else GO_ON)


def _kill(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass
