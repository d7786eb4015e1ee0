"""Patched mode: one view of two trees, the user's files and what the script has made of them.

What the script writes lies in the mirror, at its own absolute path below it. A path that leads into
the mirror and the same path without it are one file. Files are copied to the mirror before they are
changed, and what the script deletes is noted as gone and stays where it is.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

from sawbones.isolation.copies import copy_file

# Not files: pipes, terminals, accelerators, and what the kernel says of processes.
_DEVICES = ("/dev/", "/proc/")
_SHARED_MEMORY = "/dev/shm/"
_MAX_LINKS = 40
_GONE = "gone.jsonl"


class Tree:
    def __init__(self, mirror: str, own: tuple[str, ...], allowed: tuple[str, ...] = ()) -> None:
        """`own`: folders of ours, in which the script may write as it likes. `allowed`: files and
        folders of the user's that it may really change, so that they have no copy.
        """
        self.mirror = os.path.realpath(mirror)
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in own)
        self._allowed = tuple(os.path.realpath(path) + os.sep for path in allowed)
        self._gone_file = os.path.join(os.path.dirname(self.mirror), _GONE)
        self._gone: set[str] = set()
        self._gone_read = 0
        libraries = {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)}
        self._libraries = tuple(folder + os.sep for folder in libraries if folder != os.sep)
        self._libraries_changed = False

    # where a path leads

    def place(self, path: Any, follow: bool = True, dir_fd: int | None = None) -> str | None:
        """The user's path that is meant, or None where the call may go ahead as it is."""
        if isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        text = os.fsdecode(os.fspath(path))
        if not text or "\0" in text:
            return None
        if not os.path.isabs(text):
            folder = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
            text = os.path.join(folder, text)
        real = self._resolve(self._without_mirror(text), follow)
        below = real + os.sep
        if below.startswith(self._own):
            return None
        if below.startswith(_DEVICES) and not below.startswith(_SHARED_MEMORY):
            return None
        return real

    def _without_mirror(self, text: str) -> str:
        if (text + os.sep).startswith(self.mirror + os.sep):
            return text[len(self.mirror) :] or os.sep
        return text

    def _resolve(self, text: str, follow: bool) -> str:
        """Links followed in both trees, with a script's own ones first."""
        here, rest, links = "", [name for name in text.split(os.sep) if name], 0
        rest.reverse()
        while rest:
            name = rest.pop()
            if name == ".":
                continue
            if name == "..":
                here = os.path.dirname(here) if here else ""
                continue
            candidate = f"{here}/{name}"
            goal = None if not rest and not follow else self._link_at(candidate)
            if goal is None or links >= _MAX_LINKS:
                here = candidate
                continue
            links += 1
            if os.path.isabs(goal):
                goal, here = self._without_mirror(goal), ""
            rest.extend(reversed([part for part in goal.split(os.sep) if part]))
        return here or os.sep

    def _link_at(self, real: str) -> str | None:
        for path in (self.moved(real), real):
            try:
                return os.readlink(path)
            except FileNotFoundError:
                if path != real and self.is_gone(real):
                    return None
            except OSError:
                return None  # there, and not a link
        return None

    def moved(self, real: str) -> str:
        """Where the script's version lies."""
        return real if self.is_allowed(real) else self.mirror + real

    def is_allowed(self, real: str) -> bool:
        return (real + os.sep).startswith(self._allowed)

    # what has been deleted

    def is_gone(self, real: str) -> bool:
        self._read_gone()
        if not self._gone:
            return False
        return any(real == gone or real.startswith(gone + os.sep) for gone in self._gone)

    def _read_gone(self) -> None:
        """Other processes of the run delete, too."""
        try:
            size = os.stat(self._gone_file).st_size
        except OSError:
            return
        if size == self._gone_read:
            return
        text = Path(self._gone_file).read_bytes()
        whole = text.rfind(b"\n") + 1
        self._gone = {json.loads(line) for line in text[:whole].splitlines()}
        self._gone_read = whole

    def note_gone(self, real: str) -> None:
        if not os.path.lexists(real):
            return  # only the script's own, and that is deleted
        file = os.open(self._gone_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, json.dumps(real).encode() + b"\n")
        os.close(file)

    def is_there(self, real: str) -> bool:
        if os.path.lexists(real) and not self.is_gone(real):
            return True
        moved = self.moved(real)
        return os.path.lexists(moved)

    # where a call goes

    def reading(self, path: Any, follow: bool = True, dir_fd: int | None = None) -> Any:
        """The script's version, the user's, or an error when the script has deleted it."""
        if self._is_library(path):
            return path
        real = self.place(path, follow, dir_fd)
        if real is None:
            return path
        moved = self.moved(real)
        if moved == real:
            return self._as_given(path, real, dir_fd)
        gone = self.is_gone(real)
        if os.path.lexists(moved):
            both_folders = os.path.isdir(moved) and os.path.isdir(real)
            if not both_folders or gone:
                return self._as_given(path, moved, dir_fd)
        elif gone:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._as_given(path, real, dir_fd) if os.path.lexists(real) else path

    def _is_library(self, path: Any) -> bool:
        """Thousands of look-ups during an import; nothing there is changed as a rule."""
        return (
            isinstance(path, str)
            and path.startswith(self._libraries)
            and not self._libraries_changed
            and ".." not in path
        )

    @staticmethod
    def _as_given(path: Any, target: str, dir_fd: int | None) -> Any:
        """As the script wrote it where that leads to the same place: names show in messages."""
        if dir_fd is None and os.path.abspath(os.fsdecode(os.fspath(path))) == target:
            return path
        return target

    def writing(self, path: Any, keep: bool, follow: bool = True, dir_fd: int | None = None) -> Any:
        """Where to write; `keep`: what is there now is still needed, so it is copied first."""
        real = self.place(path, follow, dir_fd)
        if real is None:
            return path
        moved, parent = self.moved(real), os.path.dirname(real)
        is_parent = os.path.isdir(parent) and not self.is_gone(parent)
        if not is_parent and not os.path.isdir(self.moved(parent)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if real.startswith(self._libraries):
            self._libraries_changed = True
        os.makedirs(os.path.dirname(moved), exist_ok=True)
        if keep and not os.path.lexists(moved) and os.path.isfile(real) and not self.is_gone(real):
            copy_file(real, moved)
        return self._as_given(path, moved, dir_fd)

    def folder(self, path: Any, dir_fd: int | None = None) -> Any:
        """A folder to stand in or to change itself: made in the mirror when it is there at all."""
        real = self.place(path, True, dir_fd)
        if real is None:
            return path
        if os.path.isdir(real) and not self.is_gone(real):
            os.makedirs(self.moved(real), exist_ok=True)
        return self.moved(real)

    def goal(self, target: Any) -> Any:
        """Of a link that is made: into the mirror, since native code follows it, too."""
        text = os.fsdecode(os.fspath(target))
        is_own = (text + os.sep).startswith(
            (self.mirror + os.sep, *self._own, *self._allowed, *_DEVICES)
        )
        return self.mirror + text if os.path.isabs(text) and not is_own else target

    def names_in(self, real: str, path: Any) -> list[str]:
        """Of both trees together."""
        moved = self.moved(real)
        gone = self.is_gone(real)
        if gone and not os.path.isdir(moved):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        is_users = not gone and (os.path.isdir(real) or not os.path.isdir(moved))
        below = os.listdir(real) if is_users else []
        names = [name for name in below if not self.is_gone(os.path.join(real, name))]
        own = os.listdir(moved) if os.path.isdir(moved) else []
        known = set(names)
        return [*names, *(name for name in own if name not in known)]
