"""What is replaced in a process that runs the user's code, by mode and by what is allowed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from sawbones.isolation.allowing import files_in
from sawbones.isolation.choosing import Isolation
from sawbones.isolation.connections import Connections
from sawbones.isolation.family import parent_of
from sawbones.isolation.held_back import Record
from sawbones.isolation.landlock import confine, holds_writes
from sawbones.isolation.linux import drop_capabilities
from sawbones.isolation.native_writes import NativeWrites
from sawbones.isolation.processes import GUARDING, Processes
from sawbones.isolation.reach import Reach
from sawbones.isolation.redirects import Redirects, Wrapping
from sawbones.isolation.rulings import Answer, Rulings
from sawbones.isolation.scratch import Room
from sawbones.isolation.supervising import Judge, Supervisor
from sawbones.isolation.syscalls import NETWORK
from sawbones.isolation.tree import Tree

_FILE = "guarding.json"
# Terminals, /dev/null and the shared memory of loader workers; a process's own settings.
SHARED_WITH_ALL = ("/dev", "/proc")
_installed: list[bool] = []


def plain(room: Room, run_folder: Path, isolation: Isolation) -> dict[str, Any]:
    """For the child of this room; also left in its box, for the processes that it starts."""
    settings = {
        "mode": isolation.mode,
        "allowed": list(isolation.allowed),
        "box": str(room.box),
        "mirror": room.mirror,
        "working_folder": str(room.working_folder),
        "run_folder": str(run_folder.resolve()),
        "bench": os.getpid(),
    }
    (room.box / _FILE).write_text(json.dumps(settings), encoding="utf-8")
    return settings


def install(settings: dict[str, Any]) -> None:
    if _installed:  # forked from a process that has them, or told twice
        return
    _installed.append(True)
    kernel, box = settings["mode"] == "kernel", settings["box"]
    record = Record(Path(settings["run_folder"]), settings["working_folder"])
    if "network" not in settings["allowed"]:
        Connections(record, kernel, Reach(box, _leader(settings["bench"]))).install()
    if kernel:
        return
    wrapping = Wrapping()
    if "subprocess" not in settings["allowed"]:
        Processes(record, wrapping, box, os.path.join(box, _FILE)).install()
    own = (box, settings["run_folder"])
    allowed = files_in(settings["allowed"])
    tree = Tree(settings["mirror"], own, allowed)
    if sys.platform.startswith("linux"):
        drop_capabilities()  # mounts, networks, clocks, modules: what root could change beside files
    confine((*own, settings["mirror"], *allowed, *SHARED_WITH_ALL))  # paths as they really are
    NativeWrites(tree, wrapping, box).install()
    Redirects(tree, wrapping).install()


def supervisor(room: Room, run_folder: Path, isolation: Isolation) -> Supervisor | None:
    """For the child of this room; in patched mode, where the machine can do it."""
    if not isolation.is_supervised:
        return None
    own = (str(room.box), str(run_folder), room.mirror, *isolation.files)
    writable = tuple(os.path.realpath(path) for path in own)
    record = Record(run_folder, str(room.working_folder))

    made: list[Rulings] = []

    def judge_of(leader: int) -> Judge:
        reach = Reach(str(room.box), leader)
        made.append(Rulings(writable, SHARED_WITH_ALL, reach, holds_writes()))
        return made[0].answer

    def note(refused: Answer) -> None:
        record.note(refused.what, refused.target, None)

    def at_end() -> None:
        for rulings in made:
            rulings.remove_memory()

    return Supervisor(judge_of, note, NETWORK if isolation.network else (), at_end)


def install_from_environment() -> None:
    """In a Python process that the script has started."""
    file = os.environ.get(GUARDING)
    if file:
        install(json.loads(Path(file).read_text(encoding="utf-8")))


def _leader(bench: int) -> int:
    """The process that the bench has started, from which this one descends."""
    pid = os.getpid()
    while (parent := parent_of(pid)) is not None and parent > 1:
        if parent == bench:
            return pid
        pid = parent
    return os.getpid()
