"""Which of the two modes this machine allows: tried once, in a process that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sawbones.isolation.allowing import checked, files_in, split
from sawbones.isolation.enter import NOTHING, REASON, REFUSED
from sawbones.isolation.scratch import NoPlace, Scratch
from sawbones.isolation.unguarded import NEEDS_SUPERVISOR, unguarded_here
from sawbones.schema.errors import SawbonesError

FORCED = "SAWBONES_ISOLATION"
ALLOWED = "SAWBONES_ALLOW"  # the same words as --allow, for commands that have no such flag
ISOLATION = "Isolation:"  # how the line begins that names the mode
_TRY_SECONDS = 20.0

_known: dict[tuple[str, bool], Isolation] = {}


@dataclass(frozen=True)
class Isolation:
    mode: Literal["kernel", "patched"]
    reason: str = ""  # why not the kernel mode
    allowed: tuple[str, ...] = ()
    unheld: tuple[str, ...] = ()  # patched mode: what cannot be held back here, of UNGUARDED

    @property
    def is_kernel(self) -> bool:
        return self.mode == "kernel"

    @property
    def is_supervised(self) -> bool:
        return not self.is_kernel and NEEDS_SUPERVISOR not in self.unheld

    @property
    def network(self) -> bool:
        return "network" in self.allowed

    @property
    def files(self) -> tuple[str, ...]:
        """Real files and folders that the script may change."""
        return files_in(self.allowed)

    def __str__(self) -> str:
        allowed = f"; allowed: {', '.join(self.allowed)}" if self.allowed else ""
        if not self.is_kernel:
            unheld = f"; not held back: {', '.join(self.unheld)}" if self.unheld else ""
            said = f"{self.reason}{allowed}{unheld}"
            return f"{ISOLATION} patched ({said}); see docs/how-to/isolation.md"
        what = "other files" if self.files else "files"
        what = what if self.network else f"{what} or services"
        return f"{ISOLATION} kernel (nothing the script does reaches your {what}{allowed})"


def choose(scratch: Scratch, allowed: tuple[str, ...] = ()) -> Isolation:
    allowed = checked((*allowed, *split([os.environ.get(ALLOWED, "")])))
    forced = os.environ.get(FORCED, "")
    if forced not in ("", "kernel", "patched"):
        raise SawbonesError(f"{FORCED}={forced}: either kernel or patched")
    if forced == "patched":
        return _with_gaps(Isolation("patched", f"{FORCED} is set", allowed))
    key = (str(scratch.source), "network" in allowed)
    if key not in _known:
        reason = _refusal(scratch, "network" in allowed)
        _known[key] = _patched(reason) if reason else Isolation("kernel")
    found = _known[key]
    if forced == "kernel" and not found.is_kernel:
        raise SawbonesError(f"{FORCED}=kernel, but {found.reason}")
    chosen = Isolation(found.mode, found.reason, allowed)
    return chosen if chosen.is_kernel else _with_gaps(chosen)


def refused(scratch: Scratch, allowed: tuple[str, ...], reason: str) -> Isolation:
    """What was possible in the try was refused later: patched from now on."""
    _known[str(scratch.source), "network" in allowed] = _patched(reason)
    return choose(scratch, allowed)


def _patched(reason: str) -> Isolation:
    return Isolation("patched", f"namespaces refused: {reason}")


def _with_gaps(chosen: Isolation) -> Isolation:
    """Raises where something cannot be held back here and the user has not said that it may pass."""
    gaps = unguarded_here(chosen.network)
    if gaps and "native" not in chosen.allowed:
        reasons = "; ".join(dict.fromkeys(gaps.values()))
        raise SawbonesError(
            f"isolation is patched here ({chosen.reason}) and cannot hold back: {', '.join(gaps)} "
            f"({reasons}). Nothing was run. What they are: docs/how-to/isolation.md. To run the "
            f"script all the same: --allow native, or {ALLOWED}=native"
        )
    return replace(chosen, unheld=tuple(gaps))


def _refusal(scratch: Scratch, network: bool) -> str:
    """Why there is no private room here; empty where there is one."""
    if not sys.platform.startswith("linux"):
        return f"no namespaces on {sys.platform}"
    try:
        room = scratch.room(kernel=True, network=network)
        plan = room.write_plan(room.box)
        done = subprocess.run(
            [sys.executable, "-m", "sawbones.isolation.enter", str(plan), NOTHING],
            capture_output=True,
            text=True,
            timeout=_TRY_SECONDS,
            check=False,
        )
    except NoPlace as error:
        return str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    reason = reason_of(room.box) if done.returncode == REFUSED else done.stderr.strip()[-200:]
    return reason or f"exit status {done.returncode}"


def reason_of(box: Path) -> str:
    try:
        return (box / REASON).read_text(encoding="utf-8")
    except OSError:
        return "no reason given"
