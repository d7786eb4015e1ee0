"""What a private file system is made of: an overlay for every folder, planned from outside.

A user namespace may not put one overlay over a folder that has mounts below it. So every folder
without mounts gets an overlay of its own, and the folders around mounts become plain folders of the
scratch place with small files copied in.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# Bound as they are: devices, processes and settings are no files of the user's.
SPECIAL = ("/proc", "/sys", "/dev")
COPY_BYTES = 16 << 20  # a larger file beside a mount point can be read and not written
_MOUNT_POINT = 4  # field of a mountinfo line


@dataclass(frozen=True)
class Layer:
    lower: str
    upper: str
    work: str
    needed: bool  # the script works here: without it there is no room


@dataclass(frozen=True)
class Layers:
    """One private file system, as plain values for the process that mounts it."""

    root: str  # becomes /; holds the plain folders
    layers: list[Layer] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)  # single large files
    shared: list[str] = field(default_factory=list)  # scratch folders, seen by both sides
    working_folder: str = "/"
    network: bool = False  # the real network is allowed
    allowed: list[str] = field(default_factory=list)  # the user's own, for the script to change

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_plain(raw: dict[str, Any]) -> Layers:
        return Layers(**{**raw, "layers": [Layer(**layer) for layer in raw["layers"]]})

    def written(self, path: str) -> Path:
        """Where on the real disk a file at `path` of this file system lies once it is written."""
        for layer in self.layers:
            if path == layer.lower or path.startswith(layer.lower + os.sep):
                return Path(layer.upper + path[len(layer.lower) :])
        return Path(self.root + path)

    def put(self, path: str, data: bytes) -> None:
        """A file that is there when the room is entered, in place of the user's."""
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        target = self.written(path)
        missing = []
        folder, shown = target.parent, Path(path).parent
        while not folder.is_dir():
            missing.append((folder, shown))
            folder, shown = folder.parent, shown.parent
        for folder, shown in reversed(missing):
            folder.mkdir()
            if shown.is_dir():
                shutil.copymode(shown, folder)
        target.write_bytes(data)


def plan(
    working_folder: str, number: int, place_beside: Callable[[str], Path], network: bool
) -> Layers:
    """`place_beside(path)`: a scratch folder that does not lie below `path`, since an overlay
    cannot keep its changes below itself. `number` tells several file systems of one scratch folder
    apart.
    """
    root = place_beside(working_folder) / f"root-{number}"
    root.mkdir()
    layers: list[Layer] = []
    read_only: list[str] = []
    mounts = mount_points()
    waiting = ["/"]
    while waiting:
        folder = waiting.pop()
        _like(folder, root / folder[1:])
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue  # no permission to look: the script has none either
        for entry in entries:
            path = entry.path
            if path in SPECIAL:
                (root / path[1:]).mkdir()
            elif entry.is_symlink():
                (root / path[1:]).symlink_to(os.readlink(path))
            elif entry.is_dir():
                (root / path[1:]).mkdir()
                if any(mount.startswith(path + os.sep) for mount in mounts):
                    waiting.append(path)
                else:
                    place = place_beside(path) / f"layers-{number}"
                    layers.append(_layer(path, place, len(layers), working_folder))
            elif entry.is_file() and _take(path, root / path[1:]):
                read_only.append(path)
    return Layers(str(root), layers, read_only, [], working_folder, network)


def mount_points() -> dict[str, str]:
    """Where something is mounted, below / and outside of the special folders, and its type."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[_MOUNT_POINT])
        if not (point + os.sep).startswith(tuple(name + os.sep for name in SPECIAL)):
            found[point] = fields[fields.index("-") + 1]
    return found


def can_hold_layers(folder: str) -> bool:
    """Whether overlays can keep their changes on the file system of `folder`."""
    if folder.startswith("/dev/shm"):
        kind = "tmpfs"
    else:
        above = [(len(p), kind) for p, kind in mount_points().items() if _is_below(folder, p)]
        kind = max(above)[1] if above else ""
    return kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "zfs")


def _is_below(path: str, folder: str) -> bool:
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


def _layer(path: str, place: Path, number: int, working_folder: str) -> Layer:
    upper, work = place / "upper" / path[1:], place / "work" / str(number)
    upper.mkdir(parents=True)
    work.mkdir(parents=True)
    _like(path, upper)
    needed = (working_folder + os.sep).startswith(path + os.sep)
    if needed:
        # A folder of another user cannot be copied up by this one, so it stands there already.
        shown = path
        for name in working_folder[len(path) + 1 :].split(os.sep):
            shown = os.path.join(shown, name) if name else shown
            made = Path(str(upper) + shown[len(path) :])
            made.mkdir(exist_ok=True)
            _like(shown, made)
    return Layer(path, str(upper), str(work), needed)


def _like(folder: str, made: Path) -> None:
    """The same permissions, as far as they concern this user."""
    try:
        mode = stat.S_IMODE(os.stat(folder).st_mode)
    except OSError:
        return
    if not os.access(folder, os.W_OK):
        mode &= ~0o222
    # The planner itself has to make folders in it; the last word is said when the room is entered.
    made.chmod(mode | 0o700 if os.access(folder, os.X_OK) else mode)


def _take(path: str, target: Path) -> bool:
    """Copies a small file; True when it is to be bound instead."""
    target.touch()
    try:
        if os.stat(path).st_size > COPY_BYTES:
            return True
        shutil.copy2(path, target)
    except OSError:
        pass  # not readable: it is an empty file that this user cannot read either
    return False
