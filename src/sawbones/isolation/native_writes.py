"""Patched mode: functions that open files from native code, given the path of the tree instead."""

from __future__ import annotations

import contextlib
import importlib
import os
import sqlite3
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from sawbones.isolation.redirects import Wrapping
from sawbones.isolation.tree import Tree
from sawbones.observe.launch import AfterImport

_SQLITE_ATTACH = 24


class NativeWrites:
    def __init__(self, tree: Tree, wrapping: Wrapping, box: str) -> None:
        self._tree = tree
        self._w = wrapping
        self._shared_memory = os.path.join(box, "shared_memory")

    def install(self) -> None:
        self._install_sqlite()
        self._install_shared_memory()
        for name in ("_dbm", "_gdbm"):
            with contextlib.suppress(ImportError):
                self._w.wrap(importlib.import_module(name), "open", self._database_files)
        after: dict[str, Callable[[], None]] = {
            "torch": self._install_torch,
            "safetensors": self._install_safetensors,
            "pyarrow": self._install_pyarrow,
        }
        for name, act in after.items():
            if name in sys.modules:
                act()
            else:
                sys.meta_path.insert(0, AfterImport(name, act))

    # torch

    def _install_torch(self) -> None:
        import torch

        readers: tuple[tuple[Any, str], ...] = (
            (torch.serialization, "load"),
            (torch.jit, "load"),
            (torch._C, "PyTorchFileReader"),
        )
        for owner, name in readers:
            self._w.wrap(owner, name, self._reads_first)
        self._w.wrap(torch.serialization, "save", self._writes_second)
        self._w.wrap(torch.jit, "save", self._writes_second)
        self._w.wrap(torch._C, "PyTorchFileWriter", self._writes_first)
        script = torch.jit._script
        modules: tuple[Any, ...] = (script.RecursiveScriptModule, script.ScriptModule)
        methods: tuple[tuple[Any, str], ...] = (
            *((module, "save") for module in modules),
            *((module, "_save_for_lite_interpreter") for module in modules),
            (torch._C.ScriptFunction, "save"),
            (torch._C._autograd._ProfilerResult, "save"),
        )
        for owner, name in methods:
            self._w.wrap(owner, name, self._writes_second)
        self._w.wrap(torch, "from_file", self._from_file)
        for storage in (torch.UntypedStorage, torch.storage.TypedStorage):
            self._wrap_from_file(storage)
        self._w.everywhere()

    def _wrap_from_file(self, storage: Any) -> None:
        original = storage.from_file
        replaced = type("Replaced", (), {"from_file": staticmethod(original)})
        self._w.wrap(replaced, "from_file", self._from_file)
        storage.from_file = staticmethod(replaced.__dict__["from_file"])

    def _from_file(self, given: Any, filename: Any, shared: Any = False, *a: Any, **k: Any) -> Any:
        target = self._tree.writing(filename, True) if shared else self._tree.reading(filename)
        return given(target, shared, *a, **k)

    def _reads_first(self, given: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        return self._w.freely(given, self._tree.reading(path), *args, **kwargs)

    def _writes_first(self, given: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        return self._w.freely(given, self._tree.writing(path, keep=False), *args, **kwargs)

    def _writes_second(self, given: Any, obj: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        return self._w.freely(given, obj, self._tree.writing(path, keep=False), *args, **kwargs)

    # other libraries

    def _install_safetensors(self) -> None:
        import safetensors

        self._w.wrap(safetensors, "serialize_file", self._writes_second)
        self._w.wrap(safetensors, "safe_open", self._reads_first)

    def _install_pyarrow(self) -> None:
        import pyarrow

        # How cached tables of datasets are read: they were written just before, by calls that are
        # redirected.
        for name in ("memory_map", "input_stream"):
            self._w.wrap(pyarrow, name, self._mapped)

    def _mapped(self, given: Any, source: Any, mode: str = "r", *a: Any, **k: Any) -> Any:
        rest = (mode, *a) if given.__name__ == "memory_map" or mode != "r" else a
        if given.__name__ == "memory_map" and mode != "r":
            return given(self._tree.writing(source, keep=True), *rest, **k)
        return given(self._tree.reading(source), *rest, **k)

    def _database_files(self, given: Any, path: Any, flags: str = "r", *rest: Any) -> Any:
        """dbm keeps a database in files with endings of its own."""
        for ending in (".db", ".dir", ".pag", ""):
            target = self._tree.writing(os.fsdecode(path) + ending, keep=True)
        return given(target, flags, *rest)

    # sqlite

    def _install_sqlite(self) -> None:
        def connect(given: Any, database: Any, *args: Any, **kwargs: Any) -> Any:
            is_uri = bool(kwargs.get("uri", args[6] if len(args) > 6 else False))
            made = given(self._database(database, is_uri), *args, **kwargs)
            made.set_authorizer(self._authorize)
            return made

        self._w.wrap(sqlite3, "connect", connect)
        self._w.everywhere()

    def _authorize(self, action: int, first: Any, *_: Any) -> int:
        """ATTACH and VACUUM INTO name files inside of a statement: only what is the script's
        own.
        """
        if action != _SQLITE_ATTACH or not first or str(first).startswith(":memory:"):
            return sqlite3.SQLITE_OK
        path = os.path.abspath(str(first).removeprefix("file:").partition("?")[0])
        place = self._tree.place(path)
        inside = (
            place is None
            or self._tree.is_allowed(place)
            or path.startswith(self._tree.mirror + os.sep)
        )
        return sqlite3.SQLITE_OK if inside else sqlite3.SQLITE_DENY

    def _database(self, database: Any, is_uri: bool) -> Any:
        if not isinstance(database, (str, bytes, os.PathLike)):
            return database
        text = os.fsdecode(os.fspath(database))
        if not text or text.startswith(":memory:"):
            return database
        if not (is_uri and text.startswith("file:")):
            return self._copied_with_log(database)
        path, _, rest = text.removeprefix("file:").partition("?")
        settings = parse_qs(rest)
        path = unquote(path.removeprefix("//localhost").removeprefix("//"))
        if settings.get("mode") == ["memory"] or path in ("", ":memory:"):
            return database
        only_read = settings.get("mode") == ["ro"] or settings.get("immutable") == ["1"]
        target = self._tree.reading(path) if only_read else self._copied_with_log(path)
        return f"file:{quote(os.fsdecode(target))}" + (f"?{rest}" if rest else "")

    def _copied_with_log(self, path: Any) -> Any:
        """A database that was left in the middle of a transaction needs its log to be whole."""
        for ending in ("-wal", "-journal"):
            self._tree.writing(os.fsdecode(os.fspath(path)) + ending, keep=True)
        return self._tree.writing(path, keep=True)

    # shared memory

    def _install_shared_memory(self) -> None:
        try:
            shared_memory = importlib.import_module("_posixshmem")
        except ImportError:
            return
        os.makedirs(self._shared_memory, exist_ok=True)

        def shm_open(given: Any, path: str, flags: int, mode: int = 0o777) -> Any:
            if not self._is_own(path) and os.path.exists(f"/dev/shm{path}"):
                if flags & os.O_CREAT and flags & os.O_EXCL:
                    return given(path, flags, mode)  # refused by the kernel
                raise PermissionError(
                    f"shared memory {path}: not made by this script, held back by sawbones"
                )
            number = given(path, flags, mode)
            with open(self._note(path), "w"):
                return number

        def shm_unlink(given: Any, path: str) -> Any:
            if self._is_own(path) or not os.path.exists(f"/dev/shm{path}"):
                return given(path)
            raise PermissionError(
                f"shared memory {path}: not made by this script, held back by sawbones"
            )

        self._w.wrap(shared_memory, "shm_open", shm_open)
        self._w.wrap(shared_memory, "shm_unlink", shm_unlink)

    def _note(self, path: str) -> str:
        return os.path.join(self._shared_memory, quote(path, safe=""))

    def _is_own(self, path: str) -> bool:
        """Made by this run, or one that the user allows it."""
        is_allowed = self._tree.is_allowed(os.path.realpath(f"/dev/shm{path}"))
        return is_allowed or os.path.exists(self._note(path))
