"""An ill run as a folder to pass on: its script and the modules beside it, command, seed, versions,
what was measured, and a rerun.py that needs no Sawbones and gets to the symptom in minutes.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from sawbones.handover.belongings import files_named, imported, modules_beside
from sawbones.handover.package import requirements, write_folder
from sawbones.handover.readme import CAPTURED, REPRODUCE, CapturedStep, Facts, readme
from sawbones.handover.trying import EXPECTED, step_alone, tried
from sawbones.masking import mask_bytes
from sawbones.report.postmortem import postmortem
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError

LONGEST_SECONDS = 540  # of a rerun: under ten minutes with its start
MOST_DATA_BYTES = 50 << 20
COLUMNS = ("step", "loss", "grad_norm", "lr", "step_ms", "memory_mb")
NOT_PACKAGES = {"sawbones"}


class CannotPackage(SawbonesError):
    """Something that the folder would need is not there."""


def package(
    run: Run,
    report: Report,
    script: Path,
    folder: Path,
    *,
    show_data: bool,
    verify: bool,
    step: CapturedStep | None = None,
) -> list[str]:
    """Lines that say what was done. Data files and the values of a step travel only with
    `show_data`.
    """
    if not script.is_file():
        raise CannotPackage(f"{script} is not there. Where the script is: --script PATH")
    sources = {script, *modules_beside(script)}
    root = script.parent
    files_read = files_named(sources, run.argv, (root, Path.cwd()))
    carried, at_home, outside = _parted(files_read, show_data)
    inside = {path.relative_to(root).as_posix(): path for path in sorted(sources)}
    held = {name: mask_bytes(path.read_bytes()) for name, path in inside.items()}
    masked = [name for name, path in inside.items() if held[name] != path.read_bytes()]
    held |= {name: path.read_bytes() for name, path in carried.items()}
    settings = {
        "script": script.name,
        "arguments": list(run.argv),
        "steps": _steps_needed(run, report),
        "seconds": _seconds(run),
        "error": run.ending.exception or "",
        "hangs": run.ending.kind == "hang",
        "repeats": True,
        "symptoms": [f"{one.symptom}: {one.text}" for one in report.symptoms if one.cls == "ill"],
        "needs": sorted(at_home),
    }
    held["rerun.py"] = files("sawbones.handover").joinpath("rerun.py").read_bytes()
    held["metrics.csv"] = _metrics(run)
    held["requirements.txt"] = _requirements(run, inside)
    held["environment.json"] = json.dumps(dict(run.environment), indent=1, default=str).encode()
    held["POSTMORTEM.md"] = postmortem(report, run).encode()
    is_captured = any(Path(run.folder, "bundles").glob("*.sawbones"))
    step = step if show_data else None
    if step is not None:
        held |= {f"{CAPTURED}/{step.name}.sawbones": step.bundle} if step.bundle else {}
        held |= {f"{CAPTURED}/{REPRODUCE}": step.script} if step.script is not None else {}
    held["rerun.json"] = json.dumps(settings, indent=1).encode()
    write_folder(folder, held)
    attempt = tried(folder, at_home, run.world_size) if verify else None
    if attempt is not None:
        settings["repeats"] = attempt.repeats
        held["rerun.json"] = json.dumps(settings, indent=1).encode()
        held |= {EXPECTED: attempt.expected} if attempt.expected else {}
    facts = Facts(run, settings, at_home, outside, attempt, step, is_captured)
    held["README.md"] = readme(facts).encode()
    write_folder(folder, held)
    said = [f"wrote {folder} ({len(held) + 1} files)"]
    if masked:
        said.append(f"masked secrets in {', '.join(masked)}: it may not run as it is")
    if at_home:
        said.append(f"left out {len(at_home)} data files, named in its README: --show-data")
    if outside:
        said.append(
            f"{len(outside)} files that the script names lie outside its folder: see README"
        )
    if attempt is not None:
        beside = " with the data files beside it" if at_home else ""
        done = f"ran it twice without Sawbones{beside}" if attempt.runs else "it does NOT rerun"
        said.append(f"{done}: {attempt.said}")
    if verify and step is not None and step.script is not None:
        alone = step_alone(folder / CAPTURED, REPRODUCE)
        said.append(f"ran {CAPTURED}/{REPRODUCE} without Sawbones: {alone}")
    return said


def _parted(
    files_read: Mapping[str, Path], show_data: bool
) -> tuple[dict[str, Path], dict[str, Path], list[str]]:
    """What travels, what stays at home, and what lies outside of the folder."""
    outside = [name for name in files_read if Path(name).is_absolute()]
    inside = {name: path for name, path in files_read.items() if name not in outside}
    size = sum(path.stat().st_size for path in inside.values())
    if show_data and size <= MOST_DATA_BYTES:
        return inside, {}, outside
    return {}, inside, outside


def _steps_needed(run: Run, report: Report) -> int:
    """All of a short run; of a long one as many as the symptom took to show."""
    if run.seconds <= LONGEST_SECONDS / 2 or not run.num_steps:
        return max(run.num_steps, 1)
    shown = [max(s.steps) for s in report.symptoms if s.cls == "ill" and s.steps]
    affordable = int(run.num_steps * LONGEST_SECONDS / 2 / run.seconds)
    return max(1, min(run.num_steps, max([*shown, 0]) + 1 if shown else affordable))


def _seconds(run: Run) -> int:
    """A run that stood still is given three times its own time to do so again."""
    if run.ending.kind == "hang":
        return int(min(LONGEST_SECONDS, max(30.0, 3 * run.seconds)))
    return LONGEST_SECONDS


def _metrics(run: Run) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text)
    columns = [name for name in COLUMNS if name in run.steps]
    rows.writerow(columns)
    rows.writerows(
        np.stack([run.steps[name] for name in columns], axis=1).tolist() if columns else ()
    )
    return text.getvalue().encode()


def _requirements(run: Run, inside: Mapping[str, Path]) -> bytes:
    beside = {Path(name).parts[0].removesuffix(".py") for name in inside}
    wanted: dict[str, str | None] = {}
    for name in set().union(*map(imported, inside.values())) - beside - NOT_PACKAGES:
        if name not in sys.stdlib_module_names:
            known = run.environment.get(name)
            wanted[name] = str(known) if known else None
    return requirements(wanted)
