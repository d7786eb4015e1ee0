"""The overlay: writes of a child process to places outside of its scratch copy land inside of it.

Python-level file calls only. Libraries that write from native code with absolute paths are not covered, except torch.save.
"""

from __future__ import annotations

import builtins
import io
import os
import tempfile
from pathlib import Path
from typing import Any

_WRITING = set("wax+")
_ALLOWED = ("/dev/", "/proc/")


class Overlay:
    def __init__(self, root: Path, run_folder: Path) -> None:
        self.root = str(root.resolve())
        self.outside = os.path.join(os.path.dirname(self.root), "outside")
        own = (self.root, self.outside, os.path.realpath(tempfile.gettempdir()), os.path.realpath(run_folder))
        self._inside = tuple(folder + os.sep for folder in own)
        # The real calls, kept before they are replaced.
        self._makedirs, self._exists, self._realpath = os.makedirs, os.path.exists, os.path.realpath

    def target(self, path: Any, writing: bool) -> Any:
        """Where this path really goes: itself, or its place in the overlay."""
        if isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return path
        text = os.fsdecode(os.fspath(path))
        real = self._realpath(text)
        if (real + os.sep).startswith(self._inside) or real.startswith(_ALLOWED):
            return path
        moved = self.outside + real
        if writing:
            self._makedirs(os.path.dirname(moved), exist_ok=True)
            return moved
        return moved if self._exists(moved) else path

    def install(self) -> None:
        real_open = builtins.open

        def overlay_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            return real_open(self.target(file, bool(_WRITING & set(mode))), mode, *args, **kwargs)

        builtins.open = io.open = overlay_open  # type: ignore[assignment]
        for name in ("mkdir", "makedirs", "remove", "unlink", "rmdir", "truncate"):
            self._wrap(os, name, 1)
        for name in ("rename", "replace", "link", "symlink"):
            self._wrap(os, name, 2)

    def _wrap(self, owner: Any, name: str, paths: int) -> None:
        original = getattr(owner, name)

        def moved(*args: Any, **kwargs: Any) -> Any:
            return original(*(self.target(a, True) for a in args[:paths]), *args[paths:], **kwargs)

        setattr(owner, name, moved)

    def install_torch(self) -> None:
        import torch

        original = torch.save

        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            return original(obj, self.target(f, True), *args, **kwargs)

        torch.save = save
