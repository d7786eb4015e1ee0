"""seccomp: a filter that hands rare system calls to another process and lets it answer.

The filter stays with this process and all it starts, through fork and exec; nothing can undo it.
It needs no root (Linux 5.6 or newer; a container's own filter may refuse it).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from sawbones.isolation import syscalls
from sawbones.isolation.linux import no_new_privileges

_SET_MODE_FILTER = 1
_TO_ALL_THREADS, _NEW_LISTENER, _NO_SUCH_THREAD, _WAIT_KILLABLE = 1, 8, 16, 32
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_OPENED_TO_CHANGE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820
# Where a single argument tells that a call changes nothing: it runs on without being looked at.
_FLAGS_OF = {"open": 1, "openat": 2}
_SIGNAL_OF = {"kill": 1, "tkill": 1, "tgkill": 2}  # signal 0 only asks whether somebody is there

Instruction = tuple[int, int, int, int]

_libc = ctypes.CDLL(None, use_errno=True)


def listen(skipped: Iterable[str] = ()) -> int:
    """Installs the filter; the number of the file on which calls wait for an answer."""
    if not syscalls.is_known_machine():
        raise OSError(errno.ENOSYS, f"not known on {os.uname().machine}")
    code = b"".join(struct.pack("=HBBI", *one) for one in program(set(skipped)))
    held = ctypes.create_string_buffer(code, len(code))
    count = len(code) // 8
    given = ctypes.create_string_buffer(struct.pack("@HP", count, ctypes.addressof(held)))
    no_new_privileges()
    usual = _NEW_LISTENER | _TO_ALL_THREADS | _NO_SUCH_THREAD
    listener = -1
    for flags in (usual | _WAIT_KILLABLE, usual):  # the first from Linux 5.19 on
        listener = _libc.syscall(
            ctypes.c_long(syscalls.number_of("seccomp") or 0),
            ctypes.c_uint(_SET_MODE_FILTER),
            ctypes.c_uint(flags),
            given,
        )
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    if listener < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(listener)


def program(skipped: set[str]) -> list[Instruction]:
    architecture = syscalls.AUDIT_ARCHITECTURE[os.uname().machine]
    refused = _give(_ERRNO | errno.ENOSYS)
    made: list[Instruction] = [_load(_ARCHITECTURE), (_EQUAL, 1, 0, architecture), refused]
    made += [_load(_NUMBER), (_AT_LEAST, 0, 1, _X32), refused]
    for number, name in syscalls.names().items():
        if name in skipped or name == "seccomp":
            continue
        rest = [refused] if name == "io_uring_setup" else _asked(name)
        made += [(_EQUAL, 0, len(rest), number), *rest]
    return [*made, _give(_ALLOW)]


def _asked(name: str) -> list[Instruction]:
    """Whether this call is handed over; the number is loaded, and need not be any more."""
    if name in _FLAGS_OF:
        flags = _load_argument(_FLAGS_OF[name])
        return [flags, (_ANY_BIT, 0, 1, _OPENED_TO_CHANGE), _give(_NOTIFY), _give(_ALLOW)]
    if name == "ioctl":
        kinds = (_FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR)
        tests = [part for kind in kinds for part in ((_EQUAL, 0, 1, kind), _give(_NOTIFY))]
        return [_load_argument(1), *tests, _give(_ALLOW)]
    if name in _SIGNAL_OF:
        return [*_if_not_zero(_load_argument(_SIGNAL_OF[name])), _give(_ALLOW)]
    if name in syscalls.KEYED:  # without a key: private
        return [*_if_not_zero(_load_argument(0)), _give(_ALLOW)]
    if name == "sendto":  # without an address: on a connection
        halves = (_load_argument(4), _load_argument(4, 4))
        return [*(part for half in halves for part in _if_not_zero(half)), _give(_ALLOW)]
    return [_give(_NOTIFY)]


def _if_not_zero(load: Instruction) -> list[Instruction]:
    return [load, (_EQUAL, 1, 0, 0), _give(_NOTIFY)]


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def _load_argument(index: int, half: int = 0) -> Instruction:
    return _load(_ARGUMENTS + 8 * index + half)


def _give(answer: int) -> Instruction:
    return (_RETURN, 0, 0, answer)
