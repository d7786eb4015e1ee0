"""The private room: entered by a process before it runs anything of the user's.

Started as `python -m sawbones.isolation.enter LAYERS.json MODULE ARGS...`: mounts the file system
that `layers.plan` describes, makes it the root, and goes on as `python -m MODULE ARGS...`. Where a
step is refused it ends with REFUSED, the reason beside the plan, and nothing has been run.
"""

from __future__ import annotations

import json
import os
import runpy
import stat
import sys
from pathlib import Path

from sawbones.isolation import landlock, linux
from sawbones.isolation.allowing import is_below
from sawbones.isolation.layers import SPECIAL, Layer, Layers

REFUSED = 97
REASON = "refused.txt"
NOTHING = "nothing"  # as MODULE: only try


def main() -> None:
    plan = Path(sys.argv[1])
    try:
        enter(Layers.from_plain(json.loads(plan.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError) as error:
        text = getattr(error, "strerror", None) or str(error)
        (plan.parent / REASON).write_text(text, encoding="utf-8")
        os._exit(REFUSED)
    module = sys.argv[2]
    if module == NOTHING:
        _exit_after_a_try(plan.parent)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _exit_after_a_try(box: Path) -> None:
    """Whether the script could write in its folder, where it can do so outside."""
    if os.access(".", os.W_OK):
        try:
            Path(f"sawbones-try-{os.getpid()}").touch()
        except OSError as error:
            (box / REASON).write_text(f"writing in the working folder: {error}", encoding="utf-8")
            os._exit(REFUSED)
    os._exit(0)


def enter(layers: Layers) -> None:
    outside = os.stat(layers.working_folder)
    network = 0 if layers.network else linux.NEW_NETWORK
    linux.enter_user_namespace(linux.NEW_MOUNTS | linux.NEW_IPC | network)
    linux.mount("none", "/", None, linux.RECURSIVE | linux.PRIVATE)
    root = layers.root
    linux.mount(root, root, None, linux.BIND | linux.RECURSIVE)
    for layer in layers.layers:
        _cover(layer, root + layer.lower)
    for path in layers.read_only:
        linux.mount(path, root + path, None, linux.BIND)
        linux.make_read_only(root + path)
    _special(root)
    for folder in layers.shared:
        os.makedirs(root + folder, exist_ok=True)
        linux.mount(folder, root + folder, None, linux.BIND)
    for path in layers.allowed:
        _share(path, root + path)
    linux.change_root(root)
    if network:
        linux.loopback_up()
    linux.drop_capabilities()
    landlock.confine(None)  # signals; the overlay holds the writes
    os.chdir(layers.working_folder)
    inside = os.stat(".")
    is_real = (inside.st_dev, inside.st_ino) == (outside.st_dev, outside.st_ino)
    if is_real and not is_below(layers.working_folder, layers.allowed):
        raise OSError(f"{layers.working_folder} is still the real one")


def _share(path: str, target: str) -> None:
    """A file or folder of the user's as it is, to be written to."""
    if not os.path.lexists(target):
        os.makedirs(target if os.path.isdir(path) else os.path.dirname(target), exist_ok=True)
        if not os.path.isdir(path):
            Path(target).touch()
    linux.mount(path, target, None, linux.BIND | linux.RECURSIVE)


def _cover(layer: Layer, target: str) -> None:
    """An overlay, or nothing that can be written to."""
    folders = [os.open(path, os.O_PATH) for path in (layer.lower, layer.upper, layer.work)]
    lower, upper, work = (f"/proc/self/fd/{number}" for number in folders)
    try:  # by descriptor: names may hold the commas and colons that separate options
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        linux.mount("overlay", target, "overlay", 0, options)
    except OSError:
        if layer.needed:
            raise
        try:
            linux.mount(layer.lower, target, None, linux.BIND | linux.RECURSIVE)
        except OSError:
            return  # stays an empty folder
        linux.make_read_only(target)
    finally:
        for number in folders:
            os.close(number)


def _special(root: str) -> None:
    for folder in SPECIAL:
        if os.path.isdir(folder):
            linux.mount(folder, root + folder, None, linux.BIND | linux.RECURSIVE)
    settings = root + "/proc/sys"
    linux.mount(settings, settings, None, linux.BIND | linux.RECURSIVE)
    for folder in (settings, root + "/sys"):
        linux.make_read_only(folder)
    if os.path.isdir("/dev/shm"):
        linux.mount("tmpfs", root + "/dev/shm", "tmpfs", 0, "mode=1777")
    if os.path.isdir("/dev/mqueue"):
        linux.mount("mqueue", root + "/dev/mqueue", "mqueue")
    for path in _disks("/dev"):
        linux.mount("/dev/null", root + path, None, linux.BIND)


def _disks(folder: str) -> list[str]:
    """Block devices that this user could write to."""
    found = []
    for entry in os.scandir(folder):
        if entry.is_symlink() or entry.name in ("shm", "mqueue", "pts"):
            continue
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                found += _disks(entry.path)
            elif stat.S_ISBLK(mode) and os.access(entry.path, os.W_OK):
                found.append(entry.path)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
