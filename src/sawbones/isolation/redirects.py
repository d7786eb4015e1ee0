"""Patched mode: the calls of Python that touch files, replaced by ones that go through the tree.

Covered: open, io and os (also as posix and as modules have bound them), and with them pathlib,
shutil, tempfile, zipfile, gzip, bz2, lzma, tarfile, mmap and numpy.
"""

from __future__ import annotations

import _io
import builtins
import errno
import io
import os
import posix
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from sawbones.isolation.copies import copy_file
from sawbones.isolation.tree import Tree

_WRITING = set("wax+")
_CHANGED_IN_PLACE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class Wrapping:
    """Replaces functions wherever they are bound. Calls that the replacements make themselves go to
    the originals.
    """

    def __init__(self) -> None:
        self._asking = threading.local()
        self._replaced: dict[int, tuple[Any, Any]] = {}

    def wrap(self, owner: Any, name: str, act: Callable[..., Any]) -> None:
        """owner.name(...) becomes act(original, ...)."""
        original = getattr(owner, name, None)
        if original is None:
            return

        def replaced(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._asking, "busy", False):
                return original(*args, **kwargs)
            self._asking.busy = True
            try:
                return act(original, *args, **kwargs)
            finally:
                self._asking.busy = False

        replaced.__name__ = name
        # Code of the standard library asks what a call supports by looking it up in these sets.
        for supports in (
            os.supports_dir_fd,
            os.supports_fd,
            os.supports_follow_symlinks,
            os.supports_effective_ids,
        ):
            if owner is os and original in supports:
                supports.add(replaced)
        self.replace(owner, name, replaced)

    def replace(self, owner: Any, name: str, replaced: Any) -> None:
        self._replaced[id(getattr(owner, name))] = (getattr(owner, name), replaced)
        setattr(owner, name, replaced)

    def everywhere(self) -> None:
        """Modules that have bound an original under a name of their own get the replacement."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if names is None or module.__name__.startswith("sawbones.isolation"):
                continue
            for name, value in list(names.items()):
                found = self._replaced.get(id(value))
                if found is not None and found[0] is value:
                    names[name] = found[1]

    def freely(self, given: Any, *args: Any, **kwargs: Any) -> Any:
        """For originals that run code of the user's, whose own calls are redirected again."""
        self._asking.busy = False
        return given(*args, **kwargs)


class Redirects:
    def __init__(self, tree: Tree, wrapping: Wrapping) -> None:
        self.tree = tree
        self._w = wrapping

    def install(self) -> None:
        self._replace_open()
        reads = ("stat", "access", "statvfs", "getxattr", "listxattr", "pathconf")
        for name in reads:
            self._both(name, self._read)
        for name in ("lstat", "readlink"):
            self._both(
                name, lambda given, path, *a, **k: self._read(given, path, *a, follows=False, **k)
            )
        self._both("listdir", self._listdir)
        self._both("scandir", self._scandir)
        self._both("chdir", lambda given, path: given(self.tree.folder(path)))
        for name in ("truncate", "utime", "chmod", "chown", "setxattr", "removexattr"):
            self._both(name, self._change)
        self._both("lchown", lambda given, path, *a: self._change(given, path, *a, follows=False))
        for name in ("mkdir", "mkfifo", "mknod"):
            self._both(name, self._make)
        for name in ("remove", "unlink", "rmdir"):
            self._both(name, self._remove)
        self._w.wrap(shutil, "rmtree", self._rmtree)
        for name in ("rename", "replace"):
            self._both(name, self._rename)
        self._both("link", self._hard_link)
        self._both("symlink", self._symlink)
        self._w.everywhere()

    def _both(self, name: str, act: Callable[..., Any]) -> None:
        if hasattr(os, name):
            self._w.wrap(os, name, act)
            setattr(posix, name, getattr(os, name))

    # opening

    def _replace_open(self) -> None:
        def opened(given: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            opener = kwargs.get("opener", args[5] if len(args) > 5 else None)
            if opener is not None:  # it asks os.open itself, as tempfile does
                return self._w.freely(given, file, mode, *args, **kwargs)
            if _WRITING & set(mode):
                return given(self._file(file, "w" not in mode, "x" in mode), mode, *args, **kwargs)
            return given(self.tree.reading(file), mode, *args, **kwargs)

        def os_open(
            given: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
        ) -> Any:
            if flags & _CHANGED_IN_PLACE:
                starts_empty = bool(flags & os.O_TRUNC and flags & os.O_CREAT)
                target = self._file(path, not starts_empty, bool(flags & os.O_EXCL), dir_fd)
            elif flags & os.O_TMPFILE == os.O_TMPFILE:
                target = self.tree.folder(path, dir_fd)
            else:
                target = self.tree.reading(path, dir_fd=dir_fd)
            return given(target, flags, mode, dir_fd=dir_fd if target is path else None)

        self._w.wrap(io, "open", opened)
        builtins.open = _io.open = io.open
        self._w.wrap(
            io, "open_code", lambda given, path: self._w.freely(given, self.tree.reading(path))
        )
        _io.open_code = io.open_code
        self._both("open", os_open)
        self._w.replace(io, "FileIO", self._file_io(io.FileIO))
        setattr(_io, "FileIO", io.FileIO)  # noqa: B010 - mypy takes it for a type

    def _file_io(self, original: Any) -> Any:
        redirects, wrapping = self, self._w

        class Accepting(type(original)):  # type: ignore[misc]
            """What open() makes is one of these, too."""

            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, original)

        class FileIO(original, metaclass=Accepting):  # type: ignore[misc]
            def __init__(
                self, file: Any, mode: str = "r", closefd: bool = True, opener: Any = None
            ) -> None:
                target = file
                if opener is None and not getattr(wrapping._asking, "busy", False):
                    wrapping._asking.busy = True
                    try:
                        if _WRITING & set(mode):
                            target = redirects._file(file, "w" not in mode, "x" in mode)
                        else:
                            target = redirects.tree.reading(file)
                    finally:
                        wrapping._asking.busy = False
                super().__init__(target, mode, closefd, opener)

        FileIO.__module__, FileIO.__qualname__ = original.__module__, original.__qualname__
        return FileIO

    def _file(self, path: Any, keep: bool, must_be_new: bool, dir_fd: int | None = None) -> Any:
        real = self.tree.place(path, True, dir_fd)
        if real is not None and must_be_new and self.tree.is_there(real):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if real is not None and os.path.isdir(real) and not self.tree.is_gone(real):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return self.tree.writing(path, keep, True, dir_fd)

    # looking

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
        target = self.tree.reading(path, follows, dir_fd)
        if dir_fd is not None and target is path:
            kwargs["dir_fd"] = dir_fd
        return given(target, *args, **kwargs)

    def _listdir(self, given: Any, path: Any = ".") -> list[Any]:
        real = self._listed(path)
        if real is None:
            return list(given(path if path is not None else "."))
        names = self.tree.names_in(real, path)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def _scandir(self, given: Any, path: Any = ".") -> Any:
        real = self._listed(path)
        if real is None:
            return given(path if path is not None else ".")
        shown = os.fspath("." if path is None or isinstance(path, int) else path)
        entries: dict[str, Any] = {}
        for folder in (real, self.tree.moved(real)):
            if os.path.isdir(folder):
                entries.update((entry.name, entry) for entry in given(folder))
        names = self.tree.names_in(real, path)
        return _Entries([_Entry(entries[name], shown) for name in names if name in entries])

    def _listed(self, path: Any) -> str | None:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        path = "." if path is None else path
        if self.tree._is_library(path):
            return None
        return self.tree.place(path)

    # changing

    def _change(
        self,
        given: Any,
        path: Any,
        *args: Any,
        dir_fd: int | None = None,
        follows: bool = True,
        **kwargs: Any,
    ) -> Any:
        follows = follows and kwargs.get("follow_symlinks", True)
        real = self.tree.place(path, follows, dir_fd)
        if real is None:
            return _call(given, path, *args, dir_fd=dir_fd, **kwargs)
        if not self.tree.is_there(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if os.path.isdir(real) and not os.path.islink(real):
            target = self.tree.folder(path, dir_fd)
        else:
            target = self.tree.writing(path, True, follows, dir_fd)
        if not os.path.lexists(target):  # a link of the user's, changed itself
            os.symlink(self.tree.goal(os.readlink(real)), target)
        return given(target, *args, **kwargs)

    def _make(
        self, given: Any, path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any
    ) -> None:
        real = self.tree.place(path, False, dir_fd)
        if real is None:
            _call(given, path, *args, dir_fd=dir_fd, **kwargs)
            return
        if self.tree.is_there(real):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        target = self.tree.writing(path, False, False, dir_fd)
        given(target, *args, **kwargs)

    def _remove(self, given: Any, path: Any, *, dir_fd: int | None = None) -> None:
        real = self.tree.place(path, False, dir_fd)
        if real is None:
            _call(given, path, dir_fd=dir_fd)
            return
        if not self.tree.is_there(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        moved = self.tree.moved(real)
        is_folder = os.path.isdir(real) if os.path.lexists(real) else os.path.isdir(moved)
        is_folder = is_folder and not os.path.islink(moved) and not os.path.islink(real)
        if given.__name__ == "rmdir":
            if not is_folder:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if self.tree.names_in(real, path):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        elif is_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if os.path.lexists(moved):
            given(moved)
        self.tree.note_gone(real)

    def _rmtree(self, given: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        real = self.tree.place(path, False, kwargs.get("dir_fd"))
        if real is None:
            given(path, *args, **kwargs)  # all calls below it are inside, too
        elif self.tree.is_there(real):
            given(self.tree.moved(real), ignore_errors=True)
            self.tree.note_gone(real)
        elif not (kwargs.get("ignore_errors") or (args and args[0])):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _rename(self, given: Any, src: Any, dst: Any, **fds: Any) -> None:
        source = self.tree.place(src, False, fds.get("src_dir_fd"))
        goal = self.tree.place(dst, False, fds.get("dst_dir_fd"))
        if source is None and goal is None:
            given(src, dst, **fds)
            return
        if source is not None and not self.tree.is_there(source):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src)
        target = dst if goal is None else self.tree.writing(dst, False, False)
        if source is None:
            given(src, target)
            return
        self._copy_up(source)
        given(self.tree.moved(source), target)
        self.tree.note_gone(source)

    def _copy_up(self, real: str) -> None:
        """All of it, as it stands in both trees."""
        moved = self.tree.moved(real)
        os.makedirs(os.path.dirname(moved), exist_ok=True)
        if os.path.isdir(real) and not os.path.islink(real) and not self.tree.is_gone(real):
            os.makedirs(moved, exist_ok=True)
            for name in self.tree.names_in(real, real):
                self._copy_up(os.path.join(real, name))
        elif not os.path.lexists(moved):
            if os.path.islink(real):
                os.symlink(self.tree.goal(os.readlink(real)), moved)
            else:
                copy_file(real, moved)

    def _hard_link(self, given: Any, src: Any, dst: Any, **kwargs: Any) -> None:
        """A second name of the user's own file would be a way to change it."""
        if self.tree.place(src, False, kwargs.get("src_dir_fd")) is None and (
            self.tree.place(dst, False, kwargs.get("dst_dir_fd")) is None
        ):
            given(src, dst, **kwargs)
            return
        source = self.tree.writing(src, True, True, kwargs.get("src_dir_fd"))
        given(source, self.tree.writing(dst, False, False, kwargs.get("dst_dir_fd")))

    def _symlink(
        self,
        given: Any,
        src: Any,
        dst: Any,
        target_is_directory: bool = False,
        *,
        dir_fd: int | None = None,
    ) -> None:
        self._make(lambda target: given(self.tree.goal(src), target), dst, dir_fd=dir_fd)


class _Entry:
    """What os.scandir gives, under the path that the script asked for."""

    def __init__(self, entry: os.DirEntry[str], folder: Any) -> None:
        self._entry = entry
        is_bytes = isinstance(folder, bytes)
        self.name = os.fsencode(entry.name) if is_bytes else entry.name
        self.path = os.path.join(folder, self.name)

    def __fspath__(self) -> Any:
        return self.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class _Entries:
    """An iterator that can be closed."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries: Iterator[_Entry] = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _call(given: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
    return given(*args, **kwargs) if dir_fd is None else given(*args, dir_fd=dir_fd, **kwargs)
