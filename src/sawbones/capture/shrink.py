"""Shrink: the same failure from fewer examples, a shorter sequence, plainer values; a smaller
bundle and a script of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.capture import trust
from sawbones.capture.bundle import Bundle
from sawbones.capture.comparing import Changes, plain_message
from sawbones.capture.errors import CaptureError
from sawbones.capture.replay import Theatre, ways
from sawbones.capture.reproducer import NAME
from sawbones.isolation.scratch import Room
from sawbones.trials.bench import ChildFailed

SECONDS = 300.0
SCRIPT_SECONDS = 120.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Shrunk:
    bundle: Path
    script: Path | None  # that fails on its own, None where there is none
    why_no_script: str | None
    examples: tuple[int, int]  # before and after
    numbers: tuple[int, int]
    trials: int
    way: str
    operator: list[str]
    seconds: float


def shrink(
    bundle: Bundle, out: Path, seconds: float = SECONDS, say: Say = lambda text: None
) -> Shrunk:
    began = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    if not bundle.state.get("arrivals"):
        raise CaptureError(
            f"{bundle.path} holds no batches, so there is nothing to make smaller. "
            "Capture without --no-data"
        )
    if bundle.failure.kind == "rank mismatch":
        raise CaptureError(
            f"{bundle.path} is about ranks that differ: a smaller batch on one of them "
            "says nothing about that"
        )
    tried: list[str] = []
    with Theatre(bundle, seconds + 120.0) as theatre:
        # One rank is enough where the failure lies in what that rank was fed.
        for way in sorted(ways(bundle)):
            room = theatre.prepared()
            folder = room.box / "shrunk"
            folder.mkdir()
            found = _search(theatre, way, room, folder, seconds, say)
            if "after" in found:
                return _result(bundle, found, folder, out, way, began, say)
            tried.append(f"{way}: {found.get('failed')}")
    raise CaptureError(f"{bundle.path} could not be made smaller: " + "; ".join(tried))


def _search(
    theatre: Theatre, way: str, room: Room, folder: Path, seconds: float, say: Say
) -> dict[str, Any]:
    over = threading.Event()
    follower = threading.Thread(
        target=_follow, args=(folder / "progress.txt", over, say), daemon=True
    )
    follower.start()
    try:
        # A process that uses a GPU cannot fork, so the search takes place on the CPU.
        theatre.perform(
            way, Changes(device="cpu"), room, shrink={"folder": str(folder), "seconds": seconds}
        )
    except ChildFailed as error:
        if not (folder / "shrunk.json").exists():
            return {"failed": str(error).splitlines()[0]}
    finally:
        over.set()
        follower.join()
    try:
        found: dict[str, Any] = json.loads((folder / "shrunk.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"failed": "the captured step was not reached"}
    return found


def _follow(path: Path, over: threading.Event, say: Say) -> None:
    told = 0
    while True:
        done = over.wait(0.3)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        for line in lines[told:]:
            say(line)
        told = max(told, len(lines))
        if done:
            return


def _result(
    bundle: Bundle, found: dict[str, Any], folder: Path, out: Path, way: str, began: float, say: Say
) -> Shrunk:
    target = out / f"{bundle.path.stem}-small.sawbones"
    shutil.move(folder / "shrunk.sawbones", target)
    # The code in it is that of the bundle: a stranger's does not become the user's own by this.
    if trust.is_trusted(bundle) and (refused := trust.remember_file(target)) is not None:
        say(refused)
    script, why = None, found["outcome"].get("operators", {}).get("why")
    if (folder / NAME).is_file():
        say("running the script on its own")
        why = runs_alone(folder / NAME, bundle, found["outcome"])
        if why is None:
            script = out / NAME
            shutil.move(folder / NAME, script)
    before, after = found["before"], found["after"]
    return Shrunk(
        target,
        script,
        why if script is None else None,
        (before["examples"], after["examples"]),
        (before["numbers"], after["numbers"]),
        found["trials"],
        way,
        found["outcome"].get("operators", {}).get("lines", []),
        time.monotonic() - began,
    )


def runs_alone(script: Path, bundle: Bundle, outcome: dict[str, Any]) -> str | None:
    """None when the script, in a Python of its own, fails as the step does; else what it did."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(script)],
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            cwd=script.parent,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return "the script alone took too long"
    lines = done.stderr.strip().splitlines() or [""]
    if done.returncode == 0:
        return "the script alone does not fail"
    if bundle.failure.kind == "exception":
        wanted = _shape(
            f"{outcome.get('exception')}: {(str(outcome.get('message')).splitlines() or [''])[0]}"
        )
        return (
            None
            if any(
                _shape(line).endswith(wanted) or _shape(line).startswith(wanted) for line in lines
            )
            else lines[-1][:200]
        )
    return (
        None
        if lines[-1].startswith("AssertionError")
        else f"the script alone ends with {lines[-1][:200]}"
    )


def _shape(text: str) -> str:
    return re.sub(r"\d+", "#", plain_message(text))
