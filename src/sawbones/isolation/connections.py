"""Connections that a script makes from Python: those that leave its room are held back, by name.

In kernel mode the network is private and nothing could be reached; the calls are replaced only so
that the refusal says what was wanted. In patched mode they are what holds connections back.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import Any

from sawbones.isolation.family import descendants
from sawbones.isolation.held_back import Record, is_listening, listening

_ADVICE = "was held back by sawbones; to allow it: sawbones diagnose --allow network"


class Connections:
    def __init__(self, record: Record, kernel: bool, box: str, leader: int) -> None:
        """`leader`: the first process of this run; what it and its descendants listen on is its
        own.
        """
        self._record = record
        self._kernel = kernel
        self._box = os.path.realpath(box) + os.sep
        self._leader = leader

    def install(self) -> None:
        # An audit hook hears of every call of Python, also of those that pass `socket` by.
        sys.addaudithook(self._audit)
        if self._kernel:
            self._note_refusals()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not event.startswith("socket."):
            return
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            if arguments[1] is not None:
                self._check(*arguments[:2])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            host = arguments[0]
            if not _is_here(host) and not _is_address(host):
                self._refuse_name(host, arguments[1] if len(arguments) > 1 else None)

    def _note_refusals(self) -> None:
        owner: Any = socket.socket
        for name in ("connect", "connect_ex"):
            original = getattr(owner, name)

            def connect(this: Any, address: Any, _original: Any = original) -> Any:
                try:
                    result = _original(this, address)
                except ConnectionRefusedError as error:
                    if error.strerror is None or _ADVICE not in error.strerror:
                        self._note_refused(address)
                    raise
                if result == errno.ECONNREFUSED:
                    self._note_refused(address)
                return result

            setattr(owner, name, connect)

    def _check(self, this: Any, address: Any) -> None:
        """Raises where the connection would leave the room."""
        if this.family == getattr(socket, "AF_UNIX", None):
            if not self._kernel and not self._is_own_path(address):
                self._refuse(f"unix:{os.fsdecode(address)}")
            return
        if this.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host, port = str(address[0]), int(address[1])
        if not _is_here(host) and not _is_address_of_this_machine(host):
            self._refuse(f"{host}:{port}")
        is_foreign = is_listening(port) and not self._is_own_port(port)
        if not self._kernel and this.type & socket.SOCK_STREAM and is_foreign:
            self._refuse(f"{host}:{port}")

    def _note_refused(self, address: Any) -> None:
        """Nobody listens in the private network; outside of it, perhaps."""
        if isinstance(address, tuple):
            port = int(address[1])
            self._record.add("network", f"localhost:{port}", local_port=port)
        else:
            self._record.add("network", f"unix:{os.fsdecode(address)}")

    def _refuse(self, target: str) -> None:
        self._record.add("network", target)
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"the connection to {target} {_ADVICE}")

    def _refuse_name(self, host: Any, port: Any) -> None:
        name = os.fsdecode(host) if isinstance(host, (str, bytes)) else str(host)
        target = f"{name}:{port}" if port not in (None, 0, "0", "") else name
        self._record.add("network", target)
        text = f"the connection to {target} {_ADVICE}"
        raise socket.gaierror(socket.EAI_AGAIN, text)

    def _is_own_path(self, address: Any) -> bool:
        if not isinstance(address, (str, bytes)):
            return False
        text = os.fsdecode(address)
        if not text.startswith("\0"):
            return os.path.realpath(text).startswith(self._box)
        rows = (line.split() for line in _lines("/proc/net/unix"))
        return self._holds({row[6] for row in rows if row[7:] == ["@" + text[1:]]})

    def _is_own_port(self, port: int) -> bool:
        return self._holds({inode for number, inode in listening() if number == port})

    def _holds(self, inodes: set[str]) -> bool:
        """Whether a process of this run has one of these sockets."""
        sockets = {f"socket:[{inode}]" for inode in inodes}
        for pid in (self._leader, *descendants(self._leader)) if sockets else ():
            try:
                for number in os.listdir(f"/proc/{pid}/fd"):
                    if os.readlink(f"/proc/{pid}/fd/{number}") in sockets:
                        return True
            except OSError:
                continue
        return False


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except OSError:
        return []


def _is_address_of_this_machine(host: str) -> bool:
    """Only an address of one's own can be bound to."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((host, 0))
    except OSError:
        return False
    return True


def _is_address(host: Any) -> bool:
    """A literal address needs no look-up."""
    try:
        ipaddress.ip_address(os.fsdecode(host).partition("%")[0])
    except (ValueError, TypeError):
        return False
    return True


def _is_here(host: Any) -> bool:
    """This machine, under one of its own names."""
    if host is None or host == b"":
        return True
    name = os.fsdecode(host) if isinstance(host, (str, bytes)) else str(host)
    if _is_address(name):
        address = ipaddress.ip_address(name.partition("%")[0])
        return address.is_loopback or address.is_unspecified
    return name.lower() in ("", "localhost", "localhost.localdomain", os.uname().nodename.lower())
