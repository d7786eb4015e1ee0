"""Scratch folders: where everything goes that a child process writes.

A scratch folder carries our mark: a file that names the folder, its inode and its owner, and that
is locked while the owner lives. The next diagnosis removes marked folders that nobody holds any
more (their owner was killed), and nothing else.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sawbones.isolation.copies import copy_small_files
from sawbones.isolation.layers import Layers, can_hold_layers, plan
from sawbones.observe import ctrl_c
from sawbones.observe.sites import MIRROR
from sawbones.schema.errors import SawbonesError

try:
    import fcntl
except ImportError:  # no file locks on this system: leftovers of killed processes are not swept
    fcntl = None  # type: ignore[assignment]

PREFIX = "sawbones-"
MARK = ".sawbones-scratch"
_MADE_BY = "scratch folder of sawbones; removed when its owner has ended"
_YOUNG_SECONDS = 60.0
_SPACE_BYTES = 1 << 30  # of a memory file system, before it is used for what a script writes
LAYERS = "layers.json"


@dataclass(frozen=True)
class Room:
    """Where one child works. Rooms are separate: what one child writes, no other one sees, unless
    it is given the same room.
    """

    source: Path  # the user's folder
    box: Path  # our files: what the child is told, what it says, its temporary files
    working_folder: Path  # where the script is started: the user's folder itself, or its copy
    layers: Layers | None = None  # of the private file system; none in patched mode

    @property
    def mirror(self) -> str:
        """Patched mode: what the script changes lies below this at its own absolute path."""
        return str(self.box / MIRROR)

    def put(self, name: str, data: bytes) -> None:
        """A file that the script finds in its folder in place of the user's."""
        if self.layers is not None:
            self.layers.put(str(self.source / name), data)
            return
        target = self.working_folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def as_the_user_knows_it(self, text: str) -> str:
        return text.replace(self.mirror, "") if self.layers is None else text

    def write_plan(self, run_folder: Path) -> Path:
        """For the process that enters the private file system."""
        assert self.layers is not None
        layers = replace(self.layers, shared=[str(self.box), str(run_folder.resolve())])
        file = self.box / LAYERS
        file.write_text(json.dumps(layers.to_plain()), encoding="utf-8")
        return file


class Scratch:
    """The private folders of one diagnosis. Everything below them goes when it is closed."""

    def __init__(self, working_folder: Path) -> None:
        self.source = working_folder.resolve()
        for parent in _parents():
            sweep(parent)
        self._count = 0
        self._one_at_a_time = threading.Lock()
        self._owned: list[_Owned] = []
        atexit.register(self.close)  # Ctrl-C may come before anybody else knows of the folder
        with ctrl_c.delayed():
            self._owned.append(_Owned(Path(tempfile.gettempdir())))

    @property
    def folder(self) -> Path:
        return self._owned[0].folder

    def room(self, kernel: bool, network: bool = False, files: Sequence[str] = ()) -> Room:
        """A fresh room that shows the user's files as they are now. `files`: those that it shares
        with the user.
        """
        number = self._next()
        box = self.folder / f"room-{number}"
        (box / "tmp").mkdir(parents=True)
        if kernel:
            with self._one_at_a_time:
                layers = plan(str(self.source), number, self._place_beside, network)
            layers = replace(layers, allowed=list(files))
            room = Room(self.source, box, self.source, layers)
            if not network:
                layers.put("/etc/hosts", _hosts())
            return room
        working_folder = Path(f"{box / MIRROR}{self.source}")
        copy_small_files(self.source, working_folder)
        return Room(self.source, box, working_folder)

    def run_folder(self) -> Path:
        return self.folder / f"run-{self._next()}"

    def close(self) -> None:
        atexit.unregister(self.close)
        for owned in self._owned:
            owned.close()

    def _next(self) -> int:
        with self._one_at_a_time:
            self._count += 1
            return self._count

    def _place_beside(self, path: str) -> Path:
        below = os.path.realpath(path).rstrip(os.sep) + os.sep

        def fits(folder: Path) -> bool:
            text = str(folder.resolve())
            return not (text + os.sep).startswith(below) and can_hold_layers(text)

        for owned in self._owned:
            if fits(owned.folder):
                return owned.folder
        for parent in _parents():
            if fits(parent) and _has_space(parent):
                with ctrl_c.delayed():
                    self._owned.append(_Owned(parent))
                return self._owned[-1].folder
        raise NoPlace(f"no temporary folder outside of {path} can hold the changes")


class NoPlace(SawbonesError):
    """A private file system would have nowhere to keep its changes."""


class _Owned:
    """One folder with our mark in it."""

    def __init__(self, parent: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
        mark = {
            "made_by": _MADE_BY,
            "folder": self.folder.name,
            "inode": self.folder.stat().st_ino,
            "uid": os.getuid(),
            "pid": os.getpid(),
            "token": secrets.token_hex(16),
        }
        self._lock: int | None = os.open(
            self.folder / MARK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        _lock(self._lock)
        os.write(self._lock, json.dumps(mark).encode())

    def close(self) -> None:
        _remove(self.folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _parents() -> list[Path]:
    found: list[Path] = []
    for name in (tempfile.gettempdir(), "/var/tmp", "/tmp", "/dev/shm"):
        folder = Path(name)
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and folder not in found:
            found.append(folder)
    return found


def _has_space(folder: Path) -> bool:
    if not str(folder).startswith("/dev/shm"):
        return True
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize >= _SPACE_BYTES


def _hosts() -> bytes:
    """The private network has nothing but its loopback, so this machine's own name means that."""
    name = os.uname().nodename
    return f"127.0.0.1 localhost {name}\n::1 localhost {name}\n".encode()


def sweep(parent: Path) -> None:
    """Remove scratch folders that carry our mark and whose owner is gone."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        mark = _open_mark(folder)
        if mark is None:
            continue
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError:
            pass  # in use
        finally:
            os.close(mark)


def _open_mark(folder: Path) -> int | None:
    """The mark of a folder that is ours and old enough to have been locked by its owner."""
    try:
        facts = folder.lstat()
        ours = stat.S_ISDIR(facts.st_mode) and stat.S_IMODE(facts.st_mode) == 0o700
        if not ours or facts.st_uid != os.getuid():
            return None
        if time.time() - facts.st_mtime < _YOUNG_SECONDS:
            return None
        file = os.open(folder / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        mark = json.loads(os.read(file, 4096))
        named = (mark["made_by"], mark["folder"], mark["inode"], mark["uid"])
        if named == (_MADE_BY, folder.name, facts.st_ino, os.getuid()) and mark["token"]:
            return file
    except (ValueError, KeyError, TypeError, OSError):
        pass
    os.close(file)
    return None


def _lock(file: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass  # a file system without locks


def _remove(folder: Path) -> None:
    """Also what a script left without write permission."""

    def again(function: Callable[..., object], path: str, info: object) -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):  # never through a link
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        except OSError:
            pass

    shutil.rmtree(folder, onerror=again)
