"""The overlay: what a child process writes outside of its scratch copy lands inside of it, and is
read back from there.

Covered: open, io and os calls, and with them pathlib, shutil, tempfile, zipfile and numpy.save;
torch.save and torch.load; safetensors; sqlite3; tables that pyarrow maps. Files are copied up
before they are changed in place, and what the script deletes or renames outside only seems gone.
Links of the scratch copy that lead to large files of the user's are outside, too. Not covered:
processes that the script starts itself, and other libraries that write from native code with paths
that are absolute or lead out of the working folder.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sawbones.observe.launch import AfterImport

_WRITING = set("wax+")
_ALLOWED = ("/dev/", "/proc/")
_CHANGED_IN_PLACE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class Overlay:
    def __init__(self, root: Path, run_folder: Path, box: Path | None = None) -> None:
        """`box`: the folder around the scratch copy that is ours as well, the one above it
        without.
        """
        self.root = str(root.resolve())
        around = str(box.resolve()) if box is not None else os.path.dirname(self.root)
        self.outside = os.path.join(around, "outside")
        own = (around, os.path.realpath(tempfile.gettempdir()), os.path.realpath(run_folder))
        self._inside = tuple(folder + os.sep for folder in own)
        self._gone: set[str] = set()  # deleted by the script, though still there
        self._asking = threading.local()  # own look-ups go past the replaced calls
        self._real: dict[str, Any] = {}

    # where a path really goes

    def place(self, path: Any, follow: bool = True, dir_fd: int | None = None) -> str | None:
        """The real path when it lies outside, None when the call may go ahead as it is."""
        if isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        text = os.fsdecode(os.fspath(path))
        if dir_fd is not None and not os.path.isabs(text):
            text = os.path.join(os.path.realpath(f"/proc/self/fd/{dir_fd}"), text)
        if follow:
            real = os.path.realpath(text)
        else:
            parent, name = os.path.split(text.rstrip(os.sep) or os.sep)
            real = os.path.join(os.path.realpath(parent or "."), name)
        return (
            None
            if (real + os.sep).startswith(self._inside) or (real + os.sep).startswith(_ALLOWED)
            else real
        )

    def moved(self, real: str) -> str:
        return self.outside + real

    def reading(self, path: Any, follow: bool = True, dir_fd: int | None = None) -> Any:
        """Where to read: the overlay's version, the real one, or an error when the script has
        deleted it.
        """
        if not self._gone and not os.path.isdir(self.outside):
            return path
        real = self.place(path, follow, dir_fd)
        if real is None:
            return path
        if os.path.lexists(self.moved(real)):
            return self.moved(real)
        if self._is_gone(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return path

    def writing(self, path: Any, keep: bool, follow: bool = True, dir_fd: int | None = None) -> Any:
        """Where to write; `keep`: what is there now is still needed, so it is copied up first."""
        real = self.place(path, follow, dir_fd)
        if real is None:
            return path
        moved, parent = self.moved(real), os.path.dirname(real)
        if not os.path.isdir(self.moved(parent)) and (
            self._is_gone(parent) or not os.path.isdir(parent)
        ):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        os.makedirs(os.path.dirname(moved), exist_ok=True)
        if keep and not os.path.lexists(moved) and os.path.isfile(real) and not self._is_gone(real):
            shutil.copy2(real, moved)
        return moved

    def _is_gone(self, real: str) -> bool:
        return any(real == gone or real.startswith(gone + os.sep) for gone in self._gone)

    def _there(self, real: str) -> bool:
        return os.path.lexists(self.moved(real)) or (
            os.path.lexists(real) and not self._is_gone(real)
        )

    # the replaced calls

    def install(self) -> None:
        self._replace_open()
        for name in ("stat", "access", *(("statvfs",) if hasattr(os, "statvfs") else ())):
            self._wrap(os, name, self._read)
        for name in ("lstat", "readlink"):
            self._wrap(
                os,
                name,
                lambda given, path, *a, **k: self._read(given, path, *a, follows=False, **k),
            )
        self._wrap(os, "listdir", self._listdir)
        self._wrap(os, "scandir", self._scandir)
        for name in ("truncate", "utime", "chmod", "chown"):
            self._wrap(os, name, self._change)
        self._wrap(os, "mkdir", self._mkdir)
        for name in ("remove", "unlink", "rmdir"):
            self._wrap(os, name, self._remove)
        self._wrap(shutil, "rmtree", self._rmtree)
        for name in ("rename", "replace"):
            self._wrap(os, name, self._rename)
        for name in ("link", "symlink"):
            self._wrap(os, name, self._link)
        self._wrap(
            sqlite3,
            "connect",
            lambda given, database, *a, **k: given(self._database(database), *a, **k),
        )
        sys.meta_path.insert(0, AfterImport("safetensors", self.install_safetensors))
        sys.meta_path.insert(0, AfterImport("pyarrow", self.install_pyarrow))

    def _wrap(self, owner: Any, name: str, act: Callable[..., Any]) -> None:
        """owner.name(...) becomes act(original, ...), except for calls made by the overlay
        itself.
        """
        original = getattr(owner, name)

        def replaced(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._asking, "busy", False):
                return original(*args, **kwargs)
            self._asking.busy = True
            try:
                return act(original, *args, **kwargs)
            finally:
                self._asking.busy = False

        replaced.__name__ = name
        # Code of the standard library asks what a call supports by looking the function up in these
        # sets.
        for supports in (
            os.supports_dir_fd,
            os.supports_fd,
            os.supports_follow_symlinks,
            os.supports_effective_ids,
        ):
            if original in supports:
                supports.add(replaced)
        setattr(owner, name, replaced)

    def _replace_open(self) -> None:
        def opened(given: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("opener") is not None:  # it asks os.open itself, as tempfile does
                return self._freely(given, file, mode, *args, **kwargs)
            if _WRITING & set(mode):
                return given(self._file(file, "w" not in mode, "x" in mode), mode, *args, **kwargs)
            return given(self.reading(file), mode, *args, **kwargs)

        def os_open(
            given: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
        ) -> Any:
            if flags & _CHANGED_IN_PLACE:
                target = self._file(path, not flags & os.O_TRUNC, bool(flags & os.O_EXCL), dir_fd)
            else:
                target = self.reading(path, dir_fd=dir_fd)
            return given(target, flags, mode, dir_fd=dir_fd if target is path else None)

        self._wrap(io, "open", opened)
        builtins.open = io.open
        self._wrap(os, "open", os_open)

    def _file(self, path: Any, keep: bool, must_be_new: bool, dir_fd: int | None = None) -> Any:
        real = self.place(path, True, dir_fd)
        if real is not None and must_be_new and self._there(real):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return self.writing(path, keep, True, dir_fd)

    def _read(
        self,
        given: Any,
        path: Any = ".",
        *args: Any,
        follows: bool = True,
        dir_fd: int | None = None,
        **kwargs: Any,
    ) -> Any:
        if not kwargs.get("follow_symlinks", True):
            follows = False
        target = self.reading(path, follows, dir_fd)
        if dir_fd is not None and target is path:
            kwargs["dir_fd"] = dir_fd
        return given(target, *args, **kwargs)

    def _change(
        self, given: Any, path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any
    ) -> Any:
        target = self.writing(path, True, kwargs.get("follow_symlinks", True), dir_fd)
        if target is not path and not os.path.lexists(target):
            real = self.place(path, True, dir_fd)
            if real is None or not os.path.isdir(real):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            os.makedirs(target, exist_ok=True)
        return (
            given(target, *args, **kwargs)
            if target is not path
            else _call(given, path, *args, dir_fd=dir_fd, **kwargs)
        )

    def _mkdir(
        self, given: Any, path: Any, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> None:
        real = self.place(path, False, dir_fd)
        if real is None:
            _call(given, path, mode, dir_fd=dir_fd)
            return
        if self._there(real):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.makedirs(self.writing(path, False, False, dir_fd), exist_ok=True)

    def _remove(self, given: Any, path: Any, *, dir_fd: int | None = None) -> None:
        real = self.place(path, False, dir_fd)
        if real is None:
            _call(given, path, dir_fd=dir_fd)
            return
        if not self._there(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if os.path.lexists(self.moved(real)):
            given(self.moved(real))
        self._gone.add(real)

    def _rmtree(self, given: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        real = self.place(path, False, kwargs.get("dir_fd"))
        if real is None:
            given(path, *args, **kwargs)  # all calls below it are inside, too
        elif self._there(real):
            given(self.moved(real), ignore_errors=True)
            self._gone.add(real)
        elif not (kwargs.get("ignore_errors") or (args and args[0])):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _rename(self, given: Any, src: Any, dst: Any, **fds: Any) -> None:
        source, goal = (
            self.place(src, False, fds.get("src_dir_fd")),
            self.place(dst, False, fds.get("dst_dir_fd")),
        )
        if source is None and goal is None:
            given(src, dst, **fds)
            return
        target = dst if goal is None else self.writing(dst, False, False)
        if source is None:
            given(src, target)
        elif os.path.lexists(self.moved(source)):
            given(self.moved(source), target)
            self._gone.add(source)
        elif os.path.isdir(source) and self._there(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            self._gone.add(source)
        elif self._there(source):
            shutil.copy2(source, target, follow_symlinks=False)
            self._gone.add(source)
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src)

    def _link(self, given: Any, src: Any, dst: Any, *args: Any, **kwargs: Any) -> None:
        goal = self.place(dst, False, kwargs.get("dir_fd", kwargs.get("dst_dir_fd")))
        outside = given.__name__ == "link" and self.place(src) is not None
        target = dst if goal is None else self.writing(dst, False, False)
        if outside:  # a hard link would be a second name of the user's own file
            shutil.copy2(self.reading(src), target)
        else:
            given(src, target, *args, **kwargs)

    def _listdir(self, given: Any, path: Any = ".") -> list[Any]:
        real = None if isinstance(path, int) else self.place(path)
        if real is None or not (self._gone or os.path.isdir(self.outside)):
            return list(given(path))
        if not self._there(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        names = (
            [name for name in given(real) if not self._is_gone(os.path.join(real, name))]
            if os.path.isdir(real)
            else []
        )
        added = given(self.moved(real)) if os.path.isdir(self.moved(real)) else []
        return [*names, *(name for name in added if name not in names)]

    def _scandir(self, given: Any, path: Any = ".") -> Any:
        real = None if isinstance(path, int) else self.place(path)
        if real is None or not (self._gone or os.path.isdir(self.outside)):
            return given(path)
        if not self._there(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        added = list(given(self.moved(real))) if os.path.isdir(self.moved(real)) else []
        hidden = {entry.name for entry in added}
        entries = list(given(real)) if os.path.isdir(real) else []
        kept = [
            e
            for e in entries
            if e.name not in hidden and not self._is_gone(os.path.join(real, e.name))
        ]
        return _Entries([*kept, *added])

    # libraries that open files from native code

    def _database(self, database: Any) -> Any:
        text = (
            os.fsdecode(database) if isinstance(database, (str, bytes, os.PathLike)) else database
        )
        if not isinstance(text, str) or not text or text.startswith((":memory:", "file:")):
            return database
        return self.writing(database, keep=True)

    def install_torch(self) -> None:
        import torch

        self._wrap(torch, "save", self._torch_save)
        self._wrap(
            torch, "load", lambda given, f, *a, **k: self._freely(given, self.reading(f), *a, **k)
        )

    def _torch_save(self, given: Any, obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return self._freely(given, obj, self.writing(f, keep=False), *args, **kwargs)

    def _freely(self, given: Any, *args: Any, **kwargs: Any) -> Any:
        """User code runs inside of pickling: its own file calls are watched again."""
        self._asking.busy = False
        return given(*args, **kwargs)

    def install_safetensors(self) -> None:
        import safetensors

        if hasattr(safetensors, "serialize_file"):
            self._wrap(safetensors, "serialize_file", self._serialize_file)
        if hasattr(safetensors, "safe_open"):
            self._wrap(
                safetensors,
                "safe_open",
                lambda given, name, *a, **k: given(self.reading(name), *a, **k),
            )

    def install_pyarrow(self) -> None:
        import pyarrow

        # How cached tables of datasets are read: they were written just before, by calls that the
        # overlay has redirected.
        for name in ("memory_map", "input_stream"):
            self._wrap(
                pyarrow, name, lambda given, source, *a, **k: given(self.reading(source), *a, **k)
            )

    def _serialize_file(
        self, given: Any, tensors: Any, filename: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return given(tensors, self.writing(filename, keep=False), *args, **kwargs)


class _Entries:
    """What os.scandir gives: an iterator that can be closed."""

    def __init__(self, entries: list[os.DirEntry[Any]]) -> None:
        self._entries: Iterator[os.DirEntry[Any]] = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> os.DirEntry[Any]:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _call(given: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
    return given(*args, **kwargs) if dir_fd is None else given(*args, dir_fd=dir_fd, **kwargs)
