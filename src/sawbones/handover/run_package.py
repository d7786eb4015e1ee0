"""An ill run as a folder to pass on: its script and the modules beside it, command, seed, versions,
what was measured, and a rerun.py that needs no Sawbones and gets to the symptom in minutes.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from sawbones.handover.package import requirements, seal, write_folder
from sawbones.masking import mask_bytes
from sawbones.report.postmortem import VERSIONS, command, postmortem
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError

LONGEST_SECONDS = 540  # of a rerun: under ten minutes with its start
MOST_DATA_BYTES = 50 << 20
COLUMNS = ("step", "loss", "grad_norm", "lr", "step_ms", "memory_mb")
NOT_PACKAGES = {"sawbones"}
CAPTURED, REPRODUCE = "captured", "reproduce.py"


class CannotPackage(SawbonesError):
    """Something that the folder would need is not there."""


@dataclass(frozen=True)
class CapturedStep:
    """The step that was captured while the run went ill, made as small as it still fails."""

    name: str
    what: str  # how it failed
    script: bytes | None  # needs torch alone; None: there is none
    bundle: bytes = b""


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
    sources = {script, *_modules_beside(script)}
    files_read = _named_files(sources, script.parent)
    held = {path.name: mask_bytes(path.read_bytes()) for path in sorted(sources)}
    masked = [path.name for path in sorted(sources) if held[path.name] != path.read_bytes()]
    size = sum(path.stat().st_size for path in files_read)
    carried = files_read if show_data and size <= MOST_DATA_BYTES else []
    held |= {path.relative_to(script.parent).as_posix(): path.read_bytes() for path in carried}
    left_out = [path for path in files_read if path not in carried]
    settings = {
        "script": script.name,
        "arguments": list(run.argv),
        "steps": _steps_needed(run, report),
        "seconds": LONGEST_SECONDS,
        "error": run.ending.exception or "",
    }
    held["rerun.py"] = files("sawbones.handover").joinpath("rerun.py").read_bytes()
    held["rerun.json"] = json.dumps(settings, indent=1).encode()
    held["metrics.csv"] = _metrics(run)
    held["requirements.txt"] = _requirements(run, sources)
    held["environment.json"] = json.dumps(dict(run.environment), indent=1, default=str).encode()
    held["POSTMORTEM.md"] = postmortem(report, run).encode()
    step = step if show_data else None
    if step is not None:
        held |= {f"{CAPTURED}/{step.name}.sawbones": step.bundle} if step.bundle else {}
        held |= {f"{CAPTURED}/{REPRODUCE}": step.script} if step.script is not None else {}
    held["README.md"] = _readme(run, settings, left_out, script.parent, step).encode()
    write_folder(folder, held)
    said = [f"wrote {folder} ({len(held) + 1} files)"]
    if masked:
        said.append(f"masked secrets in {', '.join(masked)}: it may not run as it is")
    if left_out:
        said.append(f"left out {len(left_out)} data files, named in its README: --show-data")
    if verify and not left_out and not masked:
        said.append(_verified(folder))
    if verify and step is not None and step.script is not None:
        said.append(_step_verified(folder / CAPTURED))
    return said


def _imported(path: Path) -> set[str]:
    """The first part of every module that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _modules_beside(script: Path) -> set[Path]:
    """Files next to the script that it imports, and those that they import."""
    found: set[Path] = set()
    todo = [script]
    while todo:
        for name in _imported(todo.pop()):
            path = script.parent / f"{name}.py"
            if path.is_file() and path not in found | {script}:
                found.add(path)
                todo.append(path)
    return found


def _named_files(sources: set[Path], root: Path) -> list[Path]:
    """Files that stand as text in the sources and were there before the run: data and weights."""
    written = set()
    named = set()
    for path in sources:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
                function = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if function in ("save", "savez", "to_csv") or "w" in texts[1:]:
                    written |= {t for t in texts if isinstance(t, str)}
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    found = []
    for text in sorted(named - written):
        path = root / text if text and len(text) < 200 and "\0" not in text else root
        if path.is_file() and path not in sources and path.resolve().is_relative_to(root.resolve()):
            found.append(path)
    return found


def _steps_needed(run: Run, report: Report) -> int:
    """All of a short run; of a long one as many as the symptom took to show."""
    if run.seconds <= LONGEST_SECONDS / 2 or not run.num_steps:
        return max(run.num_steps, 1)
    shown = [max(s.steps) for s in report.symptoms if s.cls == "ill" and s.steps]
    affordable = int(run.num_steps * LONGEST_SECONDS / 2 / run.seconds)
    return max(1, min(run.num_steps, max([*shown, 0]) + 1 if shown else affordable))


def _metrics(run: Run) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text)
    columns = [name for name in COLUMNS if name in run.steps]
    rows.writerow(columns)
    rows.writerows(
        np.stack([run.steps[name] for name in columns], axis=1).tolist() if columns else ()
    )
    return text.getvalue().encode()


def _requirements(run: Run, sources: set[Path]) -> bytes:
    beside = {path.stem for path in sources}
    wanted: dict[str, str | None] = {}
    for name in set().union(*map(_imported, sources)) - beside - NOT_PACKAGES:
        if name not in sys.stdlib_module_names:
            known = run.environment.get(name)
            wanted[name] = str(known) if known else None
    return requirements(wanted)


def _readme(
    run: Run,
    settings: dict[str, object],
    left_out: list[Path],
    root: Path,
    step: CapturedStep | None,
) -> str:
    known = [f"{name} {run.environment[name]}" for name in VERSIONS if run.environment.get(name)]
    seeds = [event.site.code for event in run.of_kind("seed") if event.site is not None]
    lines = [
        f"# {run.script}: an ill run, to be run again",
        "",
        "    pip install -r requirements.txt",
        "    python rerun.py",
        "",
        f"runs `{command(run)}` for {settings['steps']} optimizer steps and compares every number that it "
        "differentiates with `expected.csv`, where there is one. Sawbones is not needed. What is wrong, and "
        "what is known of the cause: `POSTMORTEM.md`. What was recorded, by step: `metrics.csv`.",
        "",
        f"- recorded with {', '.join(known)}; {run.num_steps} steps in {run.seconds:.0f} s",
        f"- seed: {'; '.join(dict.fromkeys(seeds)) or 'none was set: numbers will differ'}",
        "- every file: `sha256sum --check SHA256SUMS`",
    ]
    if step is not None:
        lines += ["", f"The captured step: {step.what}."]
    if step is not None and step.script is not None:
        lines += [
            f"`python {CAPTURED}/{REPRODUCE}` shows it with the values of that step that it takes, "
            "with torch alone and none of the data files.",
        ]
    if step is not None and step.bundle:
        lines += [
            f"`{CAPTURED}/{step.name}.sawbones` is that step with its tensors, cut to the fewest "
            "examples that still fail; that one file does need Sawbones (`sawbones replay`).",
        ]
    if left_out:
        lines += [
            "",
            "Data files that the script names and that are not in here; put them beside it:",
            "",
        ]
        for path in left_out:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(
                f"- `{path.relative_to(root)}`, {path.stat().st_size:,} bytes, SHA-256 {digest}"
            )
    return "\n".join(lines) + "\n"


def _step_verified(folder: Path) -> str:
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-B", REPRODUCE], cwd=folder, capture_output=True, text=True, env=bare
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = lines[-1] if lines else f"exit status {done.returncode}"
    return f"ran {folder.name}/{REPRODUCE} without Sawbones: {said}"


def _verified(folder: Path) -> str:
    """Runs it twice, as the receiver would: the first run gives expected.csv, the second compares."""
    said = ""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for attempt in range(2):
        done = subprocess.run(
            [sys.executable, "-B", "rerun.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            env=bare,
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode:
            said = f"it does NOT rerun: {(lines or done.stderr.strip().splitlines() or ['?'])[-1]}"
            break
        said = f"ran it twice without Sawbones: {lines[-1]}"
        if attempt == 0 and (folder / "rerun.csv").exists():
            (folder / "expected.csv").write_bytes((folder / "rerun.csv").read_bytes())
    kept = {*before, folder / "expected.csv"}
    for path in list(folder.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)
    seal(folder)
    return said
