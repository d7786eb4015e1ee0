"""Scratch copies of the working folder, so that a script run by Sawbones can overwrite nothing of the user's."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

# Larger files are linked, not copied; the overlay keeps the child from writing through the link.
COPY_BYTES = 32 << 20
TOTAL_BYTES = 512 << 20
MAX_FILES = 20_000
_SKIP = {".git", ".hg", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox"}


class Scratch:
    """A private folder for one diagnosis. Everything below it goes when it is closed."""

    def __init__(self, working_folder: Path) -> None:
        self.source = working_folder.resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="sawbones-")).resolve()
        self._count = 0

    def copy(self) -> Path:
        """A fresh copy of the working folder as it is now."""
        self._count += 1
        target = self.folder / f"copy-{self._count}" / (self.source.name or "root")
        target.mkdir(parents=True)
        copied, files = 0, 0
        for folder, subfolders, names in os.walk(self.source):
            here = Path(folder)
            subfolders[:] = [d for d in sorted(subfolders) if not self._skipped(here / d)]
            there = target / here.relative_to(self.source)
            there.mkdir(exist_ok=True)
            for name in names:
                source = here / name
                files += 1
                try:
                    size = source.stat().st_size
                    if files > MAX_FILES or size > COPY_BYTES or copied + size > TOTAL_BYTES or source.is_symlink():
                        (there / name).symlink_to(source)
                    elif source.is_file():
                        shutil.copy2(source, there / name)
                        copied += size
                except OSError:
                    continue  # a socket, a dangling link, a file without read permission: the script can't use it either
        return target

    def run_folder(self) -> Path:
        self._count += 1
        return self.folder / f"run-{self._count}"

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _skipped(self, folder: Path) -> bool:
        if folder.name in _SKIP or folder.is_symlink() or folder == self.folder:
            return True
        return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()
