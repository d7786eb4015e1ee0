"""The user's own source files: those of imported modules that lie in the working folder, and the
script itself.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sawbones.observe.sites import is_user_file

FILE_BYTES = 1 << 20
TOTAL_BYTES = 8 << 20
MAX_FILES = 500


@dataclass
class Sources:
    script: str  # its name below `files`
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def collect_sources(script: str, root: str) -> Sources:
    folder = Path(root).resolve()
    path = Path(script)
    absolute = (path if path.is_absolute() else folder / path).resolve()
    name = _relative(absolute, folder) or absolute.name
    found = Sources(name)
    total = 0
    for file, key in ((absolute, name), *_modules(folder, absolute)):
        if key in found.files or len(found.files) >= MAX_FILES:
            continue
        try:
            size = file.stat().st_size
            if size > FILE_BYTES or total + size > TOTAL_BYTES:
                found.left_out.append(f"{key} ({size} bytes)")
                continue
            found.files[key] = file.read_bytes()
            total += size
        except OSError:
            found.left_out.append(f"{key} (not readable)")
    return found


def _modules(folder: Path, script: Path) -> list[tuple[Path, str]]:
    """Also of the script's own folder, which is where its imports are looked up first."""
    found: list[tuple[Path, str]] = []
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if (
            not isinstance(name, str)
            or not name.endswith(".py")
            or not os.path.isabs(name)
            or not is_user_file(name)
        ):
            continue  # torch.ops and its like have a name that leads nowhere
        if f"{os.sep}sawbones{os.sep}" in name:
            continue  # the package itself is installed wherever a bundle is replayed
        path = Path(name).resolve()
        below = _relative(path, folder) or _relative(path, script.parent)
        if below is not None:
            found.append((path, below))
    return sorted(found, key=lambda item: item[1])


def _relative(path: Path, folder: Path) -> str | None:
    try:
        below = path.relative_to(folder).as_posix()
    except ValueError:
        return None
    return below if not any(piece.startswith(".") for piece in below.split("/")) else None
