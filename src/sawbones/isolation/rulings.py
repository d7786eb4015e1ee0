"""What the supervisor answers: whether a call of compiled code stays within its run.

The same rules as for the calls of Python, with one difference: nothing can be redirected here, only
refused. Each answer is an error number, 0 to let the call go on; with what the report says of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sawbones.isolation import syscalls
from sawbones.isolation.allowing import is_below
from sawbones.isolation.calls import Call
from sawbones.isolation.reach import Reach

GO_ON = 0
SHARED_MEMORY = "/dev/shm"
_TERMINALS = "/dev/pts"
_MEMORY_OF_THE_MACHINE = ("/dev/mem", "/dev/kmem", "/dev/port")
_UNSPECIFIED = 0
_NAME_SERVER = 53  # the port
_MAX_MESSAGES = 64
_KEYS = {"shmget": "shm", "semget": "sem", "msgget": "msg"}


@dataclass(frozen=True)
class Answer:
    error: int = GO_ON
    what: str = ""  # for the record; nothing is noted without it
    target: str = ""


YES = Answer()


@dataclass
class Rulings:
    writable: tuple[str, ...]  # folders and files, as they really are
    devices: tuple[str, ...]  # may be opened to be written to; their modes and owners may not
    reach: Reach
    holds_writes: bool  # by Landlock: then only what it does not see is decided here
    own_memory: set[str] = field(default_factory=set)  # below /dev/shm
    own_keys: set[tuple[str, int]] = field(default_factory=set)
    _by_name: dict[str, Callable[[Call], Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        groups: tuple[tuple[Callable[[Call], Answer], object], ...] = (
            (self._attributes, syscalls.ATTRIBUTES),
            (self._makes, syscalls.MAKES),
            (self._removes, syscalls.REMOVES),
            (self._moves, syscalls.MOVES),
            (self._signal, syscalls.SIGNALS),
            (self._key, syscalls.KEYED),
            (self._queue, syscalls.QUEUES),
        )
        self._by_name.update({str(name): act for act, names in groups for name in names})  # type: ignore[attr-defined]
        self._by_name |= {
            "connect": self._connect,
            "sendto": self._sendto,
            "sendmsg": self._sendmsg,
            "sendmmsg": self._sendmmsg,
        }

    def answer(self, call: Call) -> Answer:
        return self._by_name[call.name](call)

    def remove_memory(self) -> None:
        """What the run made and left, ended before it could clean up."""
        for path in self.own_memory:
            with contextlib.suppress(OSError):
                os.unlink(path)

    # files

    def _attributes(self, call: Call) -> Answer:
        path = call.place(syscalls.ATTRIBUTES[call.name])
        if path is None or is_below(path, (*self.writable, _TERMINALS)):
            return YES
        if path in self.own_memory:
            return YES
        return Answer(errno.EPERM, "files", path)

    def _makes(self, call: Call) -> Answer:
        path = call.place(syscalls.MAKES[call.name])
        if path is not None and self._is_of_the_system(call, path):
            return Answer(errno.EACCES, "system", path)
        if path is None or not self._is_memory(path):
            return self._content(path)
        if path in self.own_memory:
            return YES
        if not os.path.lexists(path):
            self.own_memory.add(path)
            return YES
        must_be_new = call.name not in ("open", "openat", "creat", "openat2")
        flags = self._flags(call)
        if must_be_new or (flags & os.O_CREAT and flags & os.O_EXCL):
            return YES  # the kernel says that it is there already
        return Answer(errno.EACCES, "files", path)

    @staticmethod
    def _flags(call: Call) -> int:
        if call.name == "openat2":
            return int.from_bytes(call.memory(call.arguments[2], 8), "little")
        return call.integer({"open": 1, "openat": 2}.get(call.name, 0))

    def _removes(self, call: Call) -> Answer:
        path = call.place(syscalls.REMOVES[call.name])
        if path is None or not self._is_memory(path) or not os.path.lexists(path):
            return self._content(path)
        if path not in self.own_memory:
            return Answer(errno.EACCES, "files", path)
        self.own_memory.discard(path)
        return YES

    def _moves(self, call: Call) -> Answer:
        """To another name, which may be one that is in use."""
        source, goal = (call.place(where) for where in syscalls.MOVES[call.name])
        for path in (source, goal):
            if path is not None and self._is_memory(path):
                if path not in self.own_memory and os.path.lexists(path):
                    return Answer(errno.EACCES, "files", path)
            elif (found := self._content(path)) is not YES:
                return found
        if goal is not None and self._is_memory(goal):
            self.own_memory.add(goal)
        return YES

    def _content(self, path: str | None) -> Answer:
        """Without a line in the report: caches of libraries are refused all the time. What a script
        dies of is named by its last words.
        """
        if path is None or self.holds_writes or is_below(path, (*self.writable, *self.devices)):
            return YES
        return Answer(errno.EACCES)

    def _is_of_the_system(self, call: Call, path: str) -> bool:
        """Disks, settings of the kernel, and what it keeps for processes of others."""
        if path.startswith("/dev/"):
            try:
                return stat.S_ISBLK(os.stat(path).st_mode) or path in _MEMORY_OF_THE_MACHINE
            except OSError:
                return False
        if not path.startswith("/proc/"):
            return False
        name = path.split(os.sep)[2]
        if not name.isdigit():
            return True
        return int(name) != call.thread and _process_of(int(name)) not in self.reach.processes()

    def _is_memory(self, path: str) -> bool:
        is_memory = path.startswith(SHARED_MEMORY + os.sep)
        return is_memory and not is_below(path, self.writable)

    # connections

    def _connect(self, call: Call) -> Answer:
        return self._address(call, call.arguments[1], call.integer(2))

    def _sendto(self, call: Call) -> Answer:
        return self._address(call, call.arguments[4], call.integer(5))

    def _sendmsg(self, call: Call) -> Answer:
        return self._message(call, call.arguments[1])

    def _sendmmsg(self, call: Call) -> Answer:
        for index in range(min(call.integer(2), _MAX_MESSAGES)):
            found = self._message(call, call.arguments[1] + 64 * index)
            if found.error:
                return found
        return YES

    def _message(self, call: Call, header: int) -> Answer:
        address, size = struct.unpack("=QI", call.memory(header, 12))
        return self._address(call, address, size) if address else YES

    def _address(self, call: Call, address: int, size: int) -> Answer:
        raw = call.memory(address, size) if 2 <= size <= 128 else b""
        if len(raw) < 2:
            return YES  # the kernel refuses it
        (family,) = struct.unpack("=H", raw[:2])
        if family == socket.AF_UNIX:
            return self._unix(call, raw[2:])
        if family == socket.AF_INET and len(raw) >= 8:
            host = socket.inet_ntop(socket.AF_INET, raw[4:8])
        elif family == socket.AF_INET6 and len(raw) >= 24:
            host = socket.inet_ntop(socket.AF_INET6, raw[8:24])
        else:
            # Away from a partner, or a question to the kernel itself.
            is_kernel = family in (_UNSPECIFIED, socket.AF_NETLINK)
            return YES if is_kernel else self._refused(f"an address of family {family}")
        (port,) = struct.unpack("!H", raw[2:4])
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if not self.reach.is_foreign(host, port):
            return YES
        what = "names" if port == _NAME_SERVER else "network"
        return Answer(errno.ECONNREFUSED, what, target)

    def _unix(self, call: Call, raw: bytes) -> Answer:
        if not raw:
            return YES
        is_file = raw[:1] != b"\0"
        path = os.fsdecode(raw.split(b"\0")[0] if is_file else raw)
        if is_file and not os.path.isabs(path):
            path = os.path.join(os.readlink(f"/proc/{call.thread}/cwd"), path)
        if is_file and not os.path.exists(path):
            return Answer(errno.ENOENT)
        return YES if self.reach.is_own_path(path) else self._refused(f"unix:{path}")

    @staticmethod
    def _refused(target: str) -> Answer:
        return Answer(errno.ECONNREFUSED, "network", target)

    # processes and what they share by number

    def _signal(self, call: Call) -> Answer:
        target = call.integer(0)
        if call.name == "pidfd_send_signal":
            if not call.integer(1):
                return YES
            target = _process_of_descriptor(call.thread, target)
        own = call.process()
        if target in (0, own, call.thread):
            return YES
        family = self.reach.processes()
        if target < -1:  # a group: the run's, when all of it is
            members = _group(-target)
            is_own = bool(members) and members <= set(family)
        else:
            is_own = _process_of(target) in family
        if is_own or (target > 0 and not os.path.exists(f"/proc/{target}")):
            return YES
        return Answer(errno.EPERM, "signals", str(target))

    def _key(self, call: Call) -> Answer:
        kind, key = _KEYS[call.name], call.integer(0)
        if (kind, key) in self.own_keys:
            return YES
        if key in _keys_in_use(kind):
            return Answer(errno.EACCES, "memory", f"{kind} {key:#x}")
        self.own_keys.add((kind, key))
        return YES

    def _queue(self, call: Call) -> Answer:
        name = call.text(call.arguments[0])
        return Answer(errno.EACCES, "memory", f"queue {name}")


def _process_of(thread: int) -> int:
    """A thread's number is good for a signal, too."""
    try:
        for line in Path(f"/proc/{thread}/status").read_text(errors="replace").splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return thread


def _process_of_descriptor(thread: int, number: int) -> int:
    for line in Path(f"/proc/{thread}/fdinfo/{number}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise ProcessLookupError(number)


def _group(number: int) -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getpgid(int(name)) == number:
                found.add(int(name))
        except OSError:
            continue
    return found


def _keys_in_use(kind: str) -> set[int]:
    try:
        lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
    except OSError:
        return set()
    return {int(line.split()[0]) for line in lines}
