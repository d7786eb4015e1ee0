"""Patched mode: the copy of the working folder that a script starts in.

Source and small files are copied, so that native code that is given a relative name finds them and
writes into the copy. Everything else is only shown by the redirected calls: reading goes to the
user's file, and the first write copies it. No link leads from the copy to a file of the user's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

FILE_BYTES = 4 << 20
TOTAL_BYTES = 64 << 20
MAX_FILES = 2_000
MAX_FOLDERS = 2_000
_ALWAYS = (".py", ".pyi", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini")
_ALWAYS_BYTES = 1 << 20  # a larger one of these is data
_FICLONE = 0x40049409
# Version control is not the script's business; caches are made again.
SKIPPED = {
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


def copy_small_files(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    copied, files, folders = 0, 0, 0
    for here, subfolders, names in os.walk(source):
        there = target / Path(here).relative_to(source)
        folders += 1
        there.mkdir(exist_ok=True)
        if folders > MAX_FOLDERS:
            break
        subfolders[:] = [name for name in sorted(subfolders) if _is_walked(Path(here, name))]
        for name in sorted(names):
            file = Path(here, name)
            try:
                if file.is_symlink() or not file.is_file():
                    continue
                size = file.stat().st_size
                is_source = file.suffix in _ALWAYS and size <= _ALWAYS_BYTES
                fits = size <= FILE_BYTES and copied + size <= TOTAL_BYTES and files < MAX_FILES
                if is_source or fits:
                    copy_file(str(file), str(there / name))
                    copied, files = copied + size, files + 1
            except OSError:
                continue  # without read permission: the script cannot use it either


def _is_walked(folder: Path) -> bool:
    if folder.name in SKIPPED or folder.is_symlink():
        return False
    return not any((folder / name).exists() for name in ("pyvenv.cfg", "conda-meta"))


def copy_file(source: str, target: str) -> None:
    """Its content, permissions and times; on some file systems without copying a byte."""
    with open(source, "rb") as given, open(target, "wb") as made:
        try:
            fcntl.ioctl(made.fileno(), _FICLONE, given.fileno())
        except OSError:
            shutil.copyfileobj(given, made, 1 << 20)
    shutil.copystat(source, target)
