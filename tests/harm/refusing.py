"""Runs a command on a machine that lacks what patched mode stands on.

`refusing.py landlock,seccomp COMMAND...`: a filter makes these system calls fail, as in a container
or on an old kernel, for the command and all it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from sawbones.isolation.linux import no_new_privileges
from sawbones.isolation.syscalls import number_of

_PR_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
CALLS = {
    "landlock": [(444, errno.ENOSYS)],
    "seccomp": [(number_of("seccomp"), errno.EPERM)],
}


def refuse(names: list[str]) -> None:
    code = [(_LOAD, 0, 0, 0)]
    for number, error in (call for name in names for call in CALLS[name]):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]
    code.append((_RETURN, 0, 0, _ALLOW))
    held = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    given = struct.pack("@HP", len(code), ctypes.addressof(held))
    no_new_privileges()
    assert ctypes.CDLL(None).prctl(_PR_SET_SECCOMP, _FILTER, given, 0, 0) == 0


if __name__ == "__main__":
    refuse(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
