"""Connections that a script makes from Python: those that leave its room are held back, by name.

In kernel mode the network is private and nothing could be reached; the calls are replaced only so
that the refusal says what was wanted. In patched mode they are what holds connections back.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Any

from sawbones.isolation.held_back import Record
from sawbones.isolation.reach import Reach, is_address, is_elsewhere, is_here

_ADVICE = "was held back by sawbones; to allow it: sawbones diagnose --allow network"


class Connections:
    def __init__(self, record: Record, kernel: bool, reach: Reach) -> None:
        self._record = record
        self._kernel = kernel
        self._reach = reach

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
            if not is_here(host) and not is_address(host):
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
            is_named = isinstance(address, (str, bytes))
            path = os.fsdecode(address) if is_named else ""
            if not self._kernel and not self._reach.is_own_path(path):
                self._refuse(f"unix:{path}")
            return
        if this.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host, port = str(address[0]), int(address[1])
        is_foreign = is_elsewhere(host) if self._kernel else self._reach.is_foreign(host, port)
        if is_foreign:
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
