"""Scratch copies of the working folder, so that a script run by Sawbones can overwrite nothing of
the user's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from sawbones.observe import ctrl_c

try:
    import fcntl
except ImportError:  # no file locks on this system: leftovers of killed processes are not swept
    fcntl = None  # type: ignore[assignment]

# Larger files are linked, not copied; the overlay keeps the child from writing through the link.
COPY_BYTES = 32 << 20
TOTAL_BYTES = 512 << 20
MAX_FILES = 20_000
LEVELS = 2  # folders above the working folder that stand in its place, too: scripts read ../data
MAX_NEIGHBOURS = 2_000
PREFIX = "sawbones-"
_YOUNG_SECONDS = 60.0
# Version control is left out: a script that asks git could change the user's index through a link.
_SKIP = {
    ".git",
    ".hg",
    "__pycache__",
    ".sawbones",
    "node_modules",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".tox",
}


class Scratch:
    """A private folder for one diagnosis. Everything below it goes when it is closed.

    A lock is held on it; the next diagnosis removes folders that nobody holds any more (their owner
    was killed).
    """

    def __init__(self, working_folder: Path) -> None:
        self.source = working_folder.resolve()
        sweep(Path(tempfile.gettempdir()))
        self._count = 0
        self._counting = threading.Lock()
        with ctrl_c.delayed():
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
            self._lock = _lock(self.folder)
            atexit.register(self.close)  # Ctrl-C may come before anybody else knows of the folder

    def copy(self) -> Path:
        """A fresh copy of the working folder as it is now."""
        target = self._placed(self.folder / f"copy-{self._next()}")
        copied, files = 0, 0
        for folder, subfolders, names in os.walk(self.source):
            here = Path(folder)
            there = target / here.relative_to(self.source)
            there.mkdir(exist_ok=True)
            linked = [d for d in sorted(subfolders) if self._is_linked(here / d)]
            for name in (
                linked
            ):  # the script may read its data through it; writes are redirected by the overlay
                (there / name).symlink_to((here / name).resolve(), target_is_directory=True)
            subfolders[:] = [
                d for d in sorted(subfolders) if d not in linked and not self._is_skipped(here / d)
            ]
            for name in names:
                source = here / name
                files += 1
                try:
                    size = source.stat().st_size
                    if (
                        files > MAX_FILES
                        or size > COPY_BYTES
                        or copied + size > TOTAL_BYTES
                        or source.is_symlink()
                    ):
                        (there / name).symlink_to(source)
                    elif source.is_file():
                        shutil.copy2(source, there / name)
                        copied += size
                except OSError:
                    # a socket, a dangling link, a file without read permission: the script can't
                    # use it either
                    continue
        return target

    def _placed(self, own: Path) -> Path:
        """An empty working folder, with links to what lies beside it and beside its parent."""
        above = [self.source, *self.source.parents][: LEVELS + 1]
        names = [folder.name or "root" for folder in reversed(above)]
        here = own.joinpath(*["root"] * (LEVELS + 1 - len(names)))
        for folder, name, below in zip(reversed(above[1:]), names, names[1:], strict=False):
            here = here / name
            here.mkdir(parents=True)
            self._link_neighbours(folder, here, below)
        target = here / names[-1]
        target.mkdir(parents=True)
        return target

    def _link_neighbours(self, folder: Path, here: Path, but: str) -> None:
        try:
            names = sorted(os.listdir(folder))[:MAX_NEIGHBOURS]
        except OSError:
            return  # no permission to look: the script has none either
        for name in names:
            if name != but and name not in _SKIP and not name.startswith(PREFIX):
                (here / name).symlink_to(folder / name)

    def run_folder(self) -> Path:
        return self.folder / f"run-{self._next()}"

    def close(self) -> None:
        atexit.unregister(self.close)
        _remove(self.folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _next(self) -> int:
        with self._counting:
            self._count += 1
            return self._count

    def _is_skipped(self, folder: Path) -> bool:
        return folder.name in _SKIP or folder == self.folder

    def _is_linked(self, folder: Path) -> bool:
        if self._is_skipped(folder):
            return False
        return (
            folder.is_symlink()
            or (folder / "pyvenv.cfg").exists()
            or (folder / "conda-meta").exists()
        )


def box(working: Path) -> Path:
    """The folder of one copy, in which nothing of the user's lies beside ours."""
    return working.parents[LEVELS]


def sweep(parent: Path) -> None:
    """Remove scratch folders whose owner is gone: nobody holds their lock."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            if (
                folder.is_symlink()
                or folder.stat().st_uid != os.getuid()
                or not (folder / ".lock").is_file()
            ):
                continue
            if time.time() - folder.stat().st_mtime < _YOUNG_SECONDS:
                continue  # its owner may not have locked it yet
            lock = os.open(folder / ".lock", os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError:
            pass  # in use
        finally:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    if fcntl is None:
        return None
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass  # a file system without locks
    return lock


def _remove(folder: Path) -> None:
    """Also what a script left without write permission."""

    def again(function: object, path: str, info: object) -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(
                path
            ):  # never through a link: it leads to the user's file
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        except OSError:
            pass

    shutil.rmtree(folder, onerror=again)
