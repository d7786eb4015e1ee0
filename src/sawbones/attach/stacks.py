"""The Python stack of another process, by py-spy: nothing of the process is changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.schema.errors import SawbonesError

READ_S = 20.0
HINT = "pip install 'sawbones[attach]'"
# Code of the interpreter, its libraries, or ours: in none of these folders does a user write.
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "/sawbones/observe/")


class CannotRead(SawbonesError):
    pass


@dataclass(frozen=True)
class Place:
    function: str
    file: str
    line: int

    @property
    def is_users(self) -> bool:
        return not self.file.startswith("<") and not any(part in self.file for part in _LIBRARIES)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class Stack:
    """Of the thread that trains; innermost place first."""

    thread: str
    places: tuple[Place, ...]

    @property
    def user_place(self) -> Place | None:
        return next((place for place in self.places if place.is_users), None)


def py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise CannotRead(f"py-spy is missing. To install it: {HINT}")
    return found


def read_stack(pid: int) -> Stack:
    command = [py_spy(), "dump", "--json", "--full-filenames", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=READ_S)
    except subprocess.TimeoutExpired:
        raise CannotRead(f"process {pid}: py-spy gave no stack in {READ_S:g} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        why = said.removeprefix("Error: ")
        if "ermission" in why:
            why += ". Reading another process may need root: sudo $(which sawbones) attach PID"
        raise CannotRead(f"process {pid}: {why}")
    return training_thread(json.loads(done.stdout), pid)


def training_thread(threads: Sequence[Mapping[str, Any]], pid: int) -> Stack:
    """The thread in whose stack the user's code is; of several, the main one."""
    stacks = [_stack(thread) for thread in threads]
    if not stacks:
        raise CannotRead(f"process {pid} has no Python thread")
    main = [s for s in stacks if s.thread == "MainThread"]
    with_code = [s for s in stacks if s.user_place is not None]
    return next((s for s in main if s.user_place is not None), (with_code or main or stacks)[0])


def _stack(thread: Mapping[str, Any]) -> Stack:
    frames = thread.get("frames") or ()
    return Stack(
        str(thread.get("thread_name") or ""),
        tuple(Place(str(f["name"]), str(f["filename"]), int(f["line"])) for f in frames),
    )
