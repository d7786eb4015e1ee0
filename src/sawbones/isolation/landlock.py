"""Landlock: the kernel itself refuses writes and signals that leave the room, whatever code tries.

It needs neither root nor namespaces, so it works in most containers (Linux 5.13 or newer; signals
from 6.12 on). It refuses and does not redirect: in patched mode it stands behind the redirected
calls, for compiled code that opens files by itself.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

from sawbones.isolation.linux import no_new_privileges

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
# Removing folders and files, making devices, folders, files, sockets, pipes and links.
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_WITH_REFER, _WITH_TRUNCATE, _WITH_NETWORK, _WITH_SCOPES = 2, 3, 4, 6  # versions

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """0 where the kernel has no Landlock, or a container's filter refuses it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_call(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def holds_writes() -> bool:
    return version() > 0


def holds_signals() -> bool:
    return version() >= _WITH_SCOPES


def confine(writable: Iterable[str] | None) -> bool:
    """This thread and all it starts may write only below these paths, and signal only each other.

    With None every file may be written. True where the kernel does it. Nothing can undo it.
    """
    known = version()
    files = _writing_rights(known) if writable is not None else 0
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if known >= _WITH_SCOPES else 0
    if not known or not (files or scopes):
        return False
    fields = [files, *([0] if known >= _WITH_NETWORK else []), *([scopes] if scopes else [])]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = _call(_CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    if rules < 0:
        return False
    try:
        for path in writable or ():
            _allow(rules, path, files)
        no_new_privileges()
        return bool(_call(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _writing_rights(known: int) -> int:
    rights = _WRITE_FILE | _CHANGE_FOLDER
    rights |= _REFER if known >= _WITH_REFER else 0
    return rights | (_TRUNCATE if known >= _WITH_TRUNCATE else 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there is not written either
    try:
        if not os.path.isdir(path):
            rights &= _WRITE_FILE | _TRUNCATE
        rule = struct.pack("=Qi", rights, place)
        _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(_libc.syscall(ctypes.c_long(number), *plain))
