"""Run folders and their files are the user's alone: 0700 and 0600, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """A folder that was there keeps the mode that its owner gave it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_private_file(path: Path) -> Path:
    """Made before anyone else opens it: SQLite gives its -wal and -shm files the mode of the
    database.
    """
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    return path
