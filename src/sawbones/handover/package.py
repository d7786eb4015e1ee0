"""A folder that runs on its own: script, requirements, README, and the SHA-256 of every file."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SUMS = "SHA256SUMS"


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    seal(folder)


def seal(folder: Path) -> None:
    """The sums of all files, in the form that `sha256sum --check SHA256SUMS` reads."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != SUMS
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def tarball(folder: Path, target: Path) -> Path:
    """The same bytes for the same files: no times, owners or order of the disk in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
                data = path.read_bytes()
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as squeezed:
        squeezed.write(packed.getvalue())
    return target


def requirements(packages: Mapping[str, str | None]) -> bytes:
    """One line per package, at the version given, or at the installed one where that is None."""
    lines = []
    for name, known in sorted(packages.items()):
        try:
            number = known or version(name)
        except PackageNotFoundError:
            continue
        lines.append(f"{name}=={number.partition('+')[0]}\n")
    return "".join(lines).encode()
