"""One system call that waits for an answer: what it was given, read from the waiting process."""

from __future__ import annotations

import ctypes
import os
import struct

from sawbones.isolation.syscalls import AT_FDCWD, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, Place

_PAGE, _MAX_PATH, _CHUNK = 4096, 4096, 512
_NOTICE = struct.Struct("=QIIiIQ6Q")  # id, thread, flags, number, architecture, address, arguments
_SPAN = struct.Struct("@PN")
NOTICE_BYTES = _NOTICE.size

# Other than CDLL it keeps the interpreter for itself during the call: these calls take a
# microsecond, and to get it back from a busy thread takes up to five thousand.
_libc = ctypes.PyDLL(None, use_errno=True)


class Call:
    def __init__(self, notice: bytes, names: dict[int, str]) -> None:
        self.id, self.thread, _, number, _, _, *self.arguments = _NOTICE.unpack(notice)
        self.name = names.get(number, "")

    def integer(self, index: int) -> int:
        """An argument of 32 bits with a sign."""
        value: int = self.arguments[index] & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value

    def memory(self, address: int, size: int) -> bytes:
        held = ctypes.create_string_buffer(size)
        here = _SPAN.pack(ctypes.addressof(held), size)
        there = _SPAN.pack(address, size)
        done = _libc.process_vm_readv(
            self.thread, here, ctypes.c_ulong(1), there, ctypes.c_ulong(1), ctypes.c_ulong(0)
        )
        if done < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return held.raw[:done]

    def text(self, address: int) -> str:
        """Up to its null byte, never beyond the page on which that stands."""
        found = b""
        while len(found) < _MAX_PATH:
            at = address + len(found)
            part = self.memory(at, min(_CHUNK, _PAGE - at % _PAGE))
            end = part.find(b"\0")
            if end >= 0 or not part:
                return os.fsdecode(found + part[: max(end, 0)])
            found += part
        return os.fsdecode(found)

    def place(self, where: Place) -> str | None:
        """The file that is meant, without links; None where it is none that others could see."""
        pointer = self.arguments[where.path] if where.path is not None else 0
        text = self.text(pointer) if pointer else ""
        if not text:
            return self.open_file(self.integer(where.folder)) if where.folder is not None else None
        text = self._for_us(text)
        if not os.path.isabs(text):
            folder = self.integer(where.folder) if where.folder is not None else AT_FDCWD
            start = "cwd" if folder == AT_FDCWD else f"fd/{folder}"
            text = os.path.join(os.readlink(f"/proc/{self.thread}/{start}"), text)
        if self._follows(where):
            return _seen(text)
        folder_of, name = os.path.split(text.rstrip(os.sep))
        if name in (".", ".."):
            return os.path.realpath(text)
        return os.path.join(os.path.realpath(folder_of or os.sep), name)

    def open_file(self, number: int) -> str | None:
        if number == AT_FDCWD:
            return os.readlink(f"/proc/{self.thread}/cwd")
        return _seen(f"/proc/{self.thread}/fd/{number}")

    def process(self) -> int:
        """The process that the waiting thread is part of."""
        with open(f"/proc/{self.thread}/status", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("Tgid:"):
                    return int(line.split()[1])
        raise ProcessLookupError(self.thread)

    def _for_us(self, text: str) -> str:
        """/proc/self and /dev/fd are the waiting process's, not ours."""
        for name in ("/proc/self/", "/proc/thread-self/"):
            if text.startswith(name):
                return f"/proc/{self.thread}/{text.removeprefix(name)}"
        if text.startswith("/dev/fd/"):
            return f"/proc/{self.thread}/fd/{text.removeprefix('/dev/fd/')}"
        return text

    def _follows(self, where: Place) -> bool:
        flags = self.integer(where.flags) if where.flags is not None else 0
        if flags & AT_SYMLINK_NOFOLLOW:
            return False
        return where.follows or bool(flags & AT_SYMLINK_FOLLOW)


def _seen(path: str) -> str | None:
    """Without links. What was deleted, a pipe or a socket has no name that leads to it."""
    real = os.path.realpath(path)
    if path.startswith("/proc/") and "/fd/" in path:
        try:
            if os.stat(path).st_nlink == 0:
                return None
        except OSError:
            return None
        if not real.startswith("/") or real.rpartition("/")[2].startswith(("pipe:[", "socket:[")):
            return None
    return real
