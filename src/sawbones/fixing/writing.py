"""Patches -> the user's files: one file at a time, whole or not at all, the original kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sawbones.fixing.proposing import Patch
from sawbones.fixing.verifying import merged
from sawbones.schema.errors import SawbonesError
from sawbones.store.recordings import RECORDINGS, make_folder

ORIGINALS = RECORDINGS / "originals"


class NotWritten(SawbonesError):
    """A file that could not be changed. It is as it was."""


def write(patches: Sequence[Patch], root: Path) -> list[tuple[Path, Path]]:
    """(file, where its original is kept) of all files that were changed."""
    files = merged(patches)
    for old, _ in files:
        _ready(root / old.file, old.raw)
    kept = []
    for old, new in files:
        path = root / old.file
        original = _keep(path, root)
        _exchange(path, new.raw)
        kept.append((path, original))
    return kept


def _ready(path: Path, known: bytes) -> None:
    try:
        now = path.read_bytes()
    except OSError as error:
        raise NotWritten(f"{path} cannot be read: {error.strerror}. Nothing was changed") from error
    if now != known:
        raise NotWritten(f"{path} has changed since it was diagnosed. Nothing was changed")
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise NotWritten(
            f"{path} is read-only. Nothing was changed. Make it writable: chmod u+w {path}"
        )


def _keep(path: Path, root: Path) -> Path:
    folder = root / ORIGINALS
    make_folder(folder)
    number = 1
    while (kept := folder / f"{path.name}.{number}").exists():
        number += 1
    shutil.copy2(path, kept)
    return kept


def _exchange(path: Path, data: bytes) -> None:
    """Through a new file beside it; a link stays a link."""
    real = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(real, name)
        os.replace(name, real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
