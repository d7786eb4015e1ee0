"""A user's folder, files beside it and services, set up to be harmed, and what has become of
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path
from types import TracebackType

from ways_to_write import WAYS

HERE = Path(__file__).resolve().parent
LARGE_BYTES = 5 << 20  # more than is copied up front in patched mode


class Decoys:
    """`root/home` is the working folder, `root/outside` lies beside it; each way has its own."""

    def __init__(self, root: Path, names: list[str]) -> None:
        self.root, self.names = root, names
        self.home, self.outside = root / "home", root / "outside"
        self.received: list[bytes] = []
        self._sockets: list[socket.socket] = []
        self.shared_memory = Path("/dev/shm") / f"decoy-{os.getpid()}-{root.name}"
        self.other_memory = self.shared_memory.with_name(f"{self.shared_memory.name}-other")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Decoys:
        self.home.mkdir(parents=True)
        for name in self.names:
            inside, outside = self.home / name, self.outside / name
            for folder in (inside, outside / "sub", outside / "empty"):
                folder.mkdir(parents=True)
            for file in (inside / "file.txt", outside / "file.txt", outside / "sub" / "deep.txt"):
                file.write_text("the user's\n")
            uses_large = "large.bin" in inspect.getsource(WAYS[name])
            (inside / "large.bin").write_bytes(bytes(LARGE_BYTES if uses_large else 100))
            (inside / "linked").symlink_to(outside, target_is_directory=True)
            database = sqlite3.connect(outside / "table.db")
            database.execute("create table t (a)")
            database.close()
        for name in ("way_list.py", "file_ways.py", "other_ways.py", "native_ways.py"):
            shutil.copy(HERE / name, self.home / name)
        shutil.copy(HERE / "ways_to_write.py", self.home / "train.py")
        for segment in (self.shared_memory, self.other_memory):
            segment.write_bytes(bytes(64))
        self.port = self._serve(socket.AF_INET, ("127.0.0.1", 0))[1]
        self.port6 = self._serve(socket.AF_INET6, ("::1", 0))[1]
        self.datagrams = self._serve_datagrams()
        self._serve(socket.AF_UNIX, str(self.root / "service"))
        return self

    def start_process(self, user: str | None = None) -> None:
        """One that does nothing but wait, and dies of a signal."""
        self._process = subprocess.Popen(["sleep", "600"], user=user)

    def _serve(self, family: socket.AddressFamily, address: object) -> tuple[str, int]:
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        self._sockets.append(server)
        threading.Thread(target=self._receive, args=(server,), daemon=True).start()
        return server.getsockname()

    def _serve_datagrams(self) -> int:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        self._sockets.append(server)

        def receive() -> None:
            with contextlib.suppress(OSError):
                while text := server.recv(16):
                    self.received.append(text)

        threading.Thread(target=receive, daemon=True).start()
        return int(server.getsockname()[1])

    def _receive(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                client.settimeout(5)
                self.received.append(client.recv(16))
                client.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        for server in self._sockets:
            server.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for segment in (self.shared_memory, self.other_memory):
            segment.unlink(missing_ok=True)

    def arguments(self) -> list[str]:
        services = {
            "port": self.port,
            "port6": self.port6,
            "datagrams": self.datagrams,
            "unix": str(self.root / "service"),
            "shared_memory": self.shared_memory.name,
            "other_memory": self.other_memory.name,
            "home": str(self.home),
            "process": self._process.pid if self._process is not None else 0,
        }
        return [str(self.outside), ",".join(self.names), json.dumps(services)]

    def state(self) -> dict[str, str]:
        """Everything that could be harmed, by name, with its content, mode and times."""
        shared = self.shared_memory
        is_there = shared.exists()
        found = {"/dev/shm": hashlib.sha256(shared.read_bytes()).hexdigest() if is_there else ""}
        for path in sorted(self.root.rglob("*")):
            facts = path.lstat()
            text = f"{facts.st_mode:o} {facts.st_mtime_ns if not path.is_dir() else ''}"
            if path.is_symlink():
                text += os.readlink(path)
            elif path.is_file():
                text += f" {facts.st_ctime_ns} {facts.st_nlink} {hashlib.sha256(path.read_bytes()).hexdigest()}"
                with contextlib.suppress(OSError):
                    text += str(os.listxattr(path))
            found[str(path.relative_to(self.root))] = text
        return found

    def harmed(self, before: dict[str, str]) -> set[str]:
        """The ways that have left a trace."""
        after = self.state()
        changed = [name for name in {*before, *after} if before.get(name) != after.get(name)]
        ways = {name.split("/")[1] for name in changed if name.count("/") and name[0] != "/"}
        if "/dev/shm" in changed:
            ways.add("shared_memory")
        if not self.other_memory.exists():
            ways.add("libc_shared_memory_removed")
        if self._process is not None and self._process.poll() is not None:
            ways.add("signal_to_another_process")
        return ways | {text.decode() for text in self.received}


# What a trace in a service or in shared memory is called, and the ways that leave it.
TRACES = {
    "connect_to_a_service": "tcp",
    "connect_to_a_unix_socket": "unix",
    "raw_socket": "raw",
    "libc_connect": "libc",
    "shared_memory_file": "shared_memory",
    "shared_memory_segment": "shared_memory",
    "libc_connect_ipv6": "libc6",
    "libc_connect_unix": "libc-unix",
    "libc_datagram": "libc-udp",
    "libc_datagram_message": "libc-message",
    "libc_shared_memory": "shared_memory",
    "libc_kill": "signal_to_another_process",
}
