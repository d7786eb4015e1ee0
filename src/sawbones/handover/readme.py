"""The README of a package: how to run it again, whether that was tried, and what is missing for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.handover.trying import Tried, command
from sawbones.report.postmortem import VERSIONS
from sawbones.report.postmortem import command as own_command
from sawbones.schema import Run

CAPTURED, REPRODUCE = "captured", "reproduce.py"


@dataclass(frozen=True)
class CapturedStep:
    """The step that was captured while the run went ill, made as small as it still fails."""

    name: str
    what: str  # how it failed
    script: bytes | None  # needs torch alone; None: there is none
    bundle: bytes = b""


@dataclass(frozen=True)
class Facts:
    run: Run
    settings: Mapping[str, Any]  # of rerun.json
    at_home: Mapping[str, Path]  # data files that are not in the folder
    outside: Sequence[str]
    tried: Tried | None
    step: CapturedStep | None  # as it travels
    is_captured: bool  # there is a step, which stays at home too


def readme(facts: Facts) -> str:
    run, settings = facts.run, facts.settings
    known = [f"{name} {run.environment[name]}" for name in VERSIONS if run.environment.get(name)]
    seeds = [event.site.code for event in run.of_kind("seed") if event.site is not None]
    lines = [
        f"# {run.script}: an ill run, to be run again",
        "",
        *_needed(facts),
        "    pip install -r requirements.txt",
        f"    {' '.join(command(run.world_size))} rerun.py",
        "",
        f"runs `{own_command(run)}` for {settings['steps']} optimizer steps, within "
        f"{settings['seconds']} seconds, and compares every number that it differentiates with "
        "`expected.csv`, where there is one. Sawbones is not needed. What is wrong, and what is known of "
        "the cause: `POSTMORTEM.md`. What was recorded, by step: `metrics.csv`.",
        "",
        *(f"- to be seen: {symptom}" for symptom in settings["symptoms"]),
        f"- {_outcome(facts)}",
        f"- recorded with {', '.join(known)}; {run.num_steps} steps in {run.seconds:.0f} s",
        f"- seed: {'; '.join(dict.fromkeys(seeds)) or 'none was set: numbers will differ'}",
        "- every file: `sha256sum --check SHA256SUMS`",
        *_captured(facts),
    ]
    return "\n".join(lines) + "\n"


def _needed(facts: Facts) -> list[str]:
    lines = []
    if facts.at_home:
        lines += [
            "**It does not run without these files, which are not in here: data is not passed on unless "
            "it is asked for (`--show-data`).** Put them beside the script, under these names:",
            "",
        ]
        for name, path in sorted(facts.at_home.items()):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"- `{name}`, {path.stat().st_size:,} bytes, SHA-256 {digest}")
        lines.append("")
    if facts.outside:
        names = ", ".join(f"`{name}`" for name in facts.outside)
        lines += [f"**The script names files outside of its folder: {names}.**", ""]
    return lines


def _outcome(facts: Facts) -> str:
    done = facts.tried
    beside = ", with the files above beside it" if facts.at_home or facts.outside else ""
    if done is None:
        return "**not tried** where it was made"
    if not done.runs:
        return f"**it did not rerun where it was made{beside}: {done.said}**"
    return f"tried twice where it was made{beside}: {done.said}"


def _captured(facts: Facts) -> list[str]:
    step = facts.step
    if step is None:
        said = (
            "A step was captured as it went ill; its values are data and stay out: `--show-data`."
        )
        return ["", said] if facts.is_captured else []
    lines = ["", f"The captured step: {step.what}."]
    if step.script is not None:
        lines.append(
            f"`python {CAPTURED}/{REPRODUCE}` shows it with the values of that step that it takes, "
            "with torch alone and none of the data files."
        )
    if step.bundle:
        lines.append(
            f"`{CAPTURED}/{step.name}.sawbones` is that step with its tensors, cut to the fewest "
            "examples that still fail; that one file does need Sawbones (`sawbones replay`)."
        )
    return lines
