"""Stop the script right after it has saved, start it again in the same folder, and compare with the
run that was never stopped.

Measured: the losses after the save, bit for bit up to 1e-5. The script resumes by itself, or by a
flag that its source names (--resume, --load, --checkpoint, ...; a flag with a value gets the path
of the checkpoint). Confirmed when a loss differs; refuted when all agree. Open when it never saves
or never loads; what the checkpoint lacks is said in every case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema import Event, Finding, Run, Verdict
from sawbones.trials.bench import Bench

NAME = "resume_equivalence"
OFF = 1e-5
STEPS = 20
_FLAG = re.compile(
    r"""["'](--[\w-]*(?:resume|load|checkpoint|ckpt|restart|continue|restore)[\w-]*)["']([^\n]*)"""
)
_STATELESS = ("SGD",)


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    saves = [e for e in run.of_kind("save") if 0 < e.step < run.num_steps]
    if not saves:
        return Verdict(
            NAME, "open", "the script saves nothing between two optimizer steps" + _lacks_text(run)
        )
    at = saves[0].step
    room = bench.room()
    # The run that it is compared with may have been made under remedies of its own.
    remedies = finding.params.get("remedies", ())
    first = bench.rerun(remedies, max_steps=at + 1, room=room)
    if not _equal(first.losses[:at], run.losses[:at]):
        return Verdict(
            NAME,
            "open",
            "two runs from the start differ already, so a resumed one cannot be judged",
        )
    saved = str(first.of_kind("save")[-1].data.get("path", "")) if first.of_kind("save") else ""
    for argv in _ways(bench, saved):
        again = replace(bench.patient, argv=argv)
        resumed = bench.rerun(remedies, max_steps=STEPS, room=room, patient=again)
        if resumed.of_kind("load") and resumed.num_steps:
            return _judge(run, resumed, at)
    return Verdict(
        NAME,
        "open",
        "the script saves, but does not load it again when it is restarted" + _lacks_text(run),
    )


def lacks(run: Run) -> list[str]:
    """Kinds of state that the run has and its fullest checkpoint does not."""
    saves = run.of_kind("save")
    if not saves:
        return []
    kinds = set(max(saves, key=lambda e: len(e.data.get("kinds", ()))).data.get("kinds", ()))
    needed = [
        ("model", True),
        ("optimizer", any(_has_state(o.cls, o.groups) for o in run.optimizers)),
    ]
    needed += [
        ("scheduler", bool(run.of_kind("schedule"))),
        ("scaler", bool(run.of_kind("scale"))),
        ("step", True),
        ("rng", True),
    ]
    return [kind for kind, used in needed if used and kind not in kinds]


def _has_state(cls: str, groups: tuple[Mapping[str, Any], ...]) -> bool:
    return cls not in _STATELESS or any(g.get("momentum") for g in groups)


def _lacks_text(run: Run) -> str:
    missing = lacks(run)
    return f"; the checkpoint lacks: {', '.join(missing)}" if missing else ""


def _ways(bench: Bench, saved: str) -> list[tuple[str, ...]]:
    """Arguments to restart with: as before, then with each flag of the source that speaks of
    loading.
    """
    argv = bench.patient.argv
    source = (bench.patient.working_folder / bench.patient.script).resolve()
    text = source.read_text(encoding="utf-8", errors="replace") if source.is_file() else ""
    ways = [argv]
    for flag, rest in _FLAG.findall(text):
        if flag in argv:
            continue
        ways.append((*argv, flag) if "store_true" in rest else (*argv, flag, saved))
    return ways[:4]


def _judge(run: Run, resumed: Run, at: int) -> Verdict:
    steps = min(resumed.num_steps, run.num_steps - at)
    goal, got = run.losses[at : at + steps], resumed.losses[:steps]
    where = _place(resumed.of_kind("load"))
    if _equal(goal, got):
        return Verdict(
            NAME,
            "refuted",
            f"resumed after {at} steps, the next {steps} losses are those of the run that went on",
        )
    gaps = np.abs(goal - got) / np.maximum(np.abs(goal), 1e-12)
    i = int(np.flatnonzero(~(gaps <= OFF))[0])
    text = (
        f"resumed after {at} steps, the loss of step {at + i} is {got[i]:.6g} instead of "
        f"{goal[i]:.6g}{_lacks_text(run)}{where}"
    )
    return Verdict(NAME, "confirmed", text, float(goal[i]), float(got[i]))


def _place(loads: tuple[Event, ...]) -> str:
    site = loads[0].site if loads else None
    return f" (loaded at {Path(site.file).name}:{site.line})" if site is not None else ""


def _equal(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
    if len(a) != len(b) or not len(a):
        return False
    return bool(
        np.all((np.abs(a - b) <= OFF * np.maximum(np.abs(a), 1e-12)) | (np.isnan(a) & np.isnan(b)))
    )
