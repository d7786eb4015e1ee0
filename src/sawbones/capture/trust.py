"""Which bundles this user's own Sawbones made.

Replaying a bundle runs code that comes out of it. Who made it cannot be told from the file: all in
it is the maker's word. So the SHA-256 of every bundle made here is kept in the user's state folder,
and any other bundle needs the user's consent.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sawbones.capture.bundle import Bundle
from sawbones.capture.container import file_sha256

MAX_LIST_BYTES = 64 << 20


def list_path() -> Path:
    stated = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return folder / "sawbones" / "trusted"


def remember(sha256: str) -> str | None:
    """Adds a bundle to the list. None, or why that could not be done."""
    try:
        path = list_path()
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # One short line appended is written whole, also when several ranks write at once.
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, f"{sha256}\n".encode())
        finally:
            os.close(handle)
    except (OSError, RuntimeError) as error:
        return (
            f"the list of your own bundles could not be written ({error}): replaying this one will "
            "ask for --trust"
        )
    return None


def remember_file(path: Path) -> str | None:
    try:
        return remember(file_sha256(path))
    except OSError as error:
        return str(error)


def is_trusted(bundle: Bundle) -> bool:
    return bundle.sha256 in _known()


def _known() -> set[str]:
    """Empty where somebody else could have written the list."""
    try:
        handle = os.open(list_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, RuntimeError):
        return set()
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        private = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if not stat.S_ISREG(status.st_mode) or not private:
            return set()
        return set(file.read(MAX_LIST_BYTES).decode("ascii", "replace").split())
