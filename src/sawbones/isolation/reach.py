"""Which addresses belong to a run: those on which one of its own processes listens.

One rule for the calls of Python (`connections`) and for those of compiled code (`rulings`).
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from sawbones.isolation.family import descendants
from sawbones.isolation.held_back import bound

# The system's own answers: who a user is, and the accelerator that several processes share.
_OF_THE_SYSTEM = (
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/var/lib/sss/pipes/",
    "/run/systemd/userdb/",
    "/tmp/nvidia-mps/",
)


class Reach:
    def __init__(self, box: str, leader: int) -> None:
        """`leader`: the first process of this run; what it and its descendants listen on is its
        own.
        """
        self._box = os.path.realpath(box) + os.sep
        self._leader = leader

    def processes(self) -> tuple[int, ...]:
        return (self._leader, *descendants(self._leader))

    def is_own_path(self, path: str) -> bool:
        """Of a unix socket; names that begin with a null byte are no files."""
        if path.startswith("\0"):
            rows = (line.split() for line in _lines("/proc/net/unix"))
            return self._holds(row[6] for row in rows if row[7:] == ["@" + path[1:]])
        real = os.path.realpath(path)
        return real.startswith((self._box, *_OF_THE_SYSTEM))

    def is_foreign(self, host: str, port: int) -> bool:
        """Another machine, or a service of this one that is not the run's."""
        if is_elsewhere(host):
            return True
        there = [inode for number, inode in bound() if number == port]
        return bool(there) and not self._holds(there)

    def _holds(self, inodes: Iterable[str]) -> bool:
        """Whether a process of this run has one of these sockets."""
        sockets = {f"socket:[{inode}]" for inode in inodes}
        for pid in self.processes() if sockets else ():
            try:
                for number in os.listdir(f"/proc/{pid}/fd"):
                    if os.readlink(f"/proc/{pid}/fd/{number}") in sockets:
                        return True
            except OSError:
                continue
        return False


def is_address(host: object) -> bool:
    """A literal address needs no look-up."""
    try:
        _address(host)
    except (ValueError, TypeError):
        return False
    return True


def is_here(host: object) -> bool:
    """This machine, under one of its own names."""
    if host is None or host == b"":
        return True
    name = os.fsdecode(host) if isinstance(host, (str, bytes)) else str(host)
    if is_address(name):
        address = _address(name)
        return address.is_loopback or address.is_unspecified
    return name.lower() in ("", "localhost", "localhost.localdomain", os.uname().nodename.lower())


def is_elsewhere(host: str) -> bool:
    return not is_here(host) and not _is_address_of_this_machine(host)


def _address(host: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if not isinstance(host, (str, bytes)):
        raise TypeError
    address = ipaddress.ip_address(os.fsdecode(host).partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _is_address_of_this_machine(host: str) -> bool:
    """Only an address of one's own can be bound to."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((host, 0))
    except OSError:
        return False
    return True


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except OSError:
        return []
