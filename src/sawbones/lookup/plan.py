"""A triage plan in three boxes of time, with the user's own file names: what to run in 5, 15 and 60
minutes, and what each answer means. From a recording it says as well what is ill and what was
looked at and found nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sawbones import faults, symptoms
from sawbones.diagnosis.rivals import BATTERIES
from sawbones.schema import LAYERS, Run, Symptom

MOST_RIVALS = 6
# Where the symptom is not known yet: what separates most.
_FIRST_TRIALS = ("overfit-one-batch", "zero-inputs", "lr=0.1", "lr=10")


def plan(script: str, argv: Sequence[str] = (), run: Run | None = None) -> str:
    command = shlex.join([script, *argv])
    ill = symptoms.read(run).symptoms if run is not None else ()
    parts = [f"# A plan for {command}", *_known(run, ill)]
    parts += [
        "## 5 minutes: is it what you think it is?",
        f"1. `sawbones try same-seed {command}`\n"
        "   Two runs that differ can't be compared: mend the seeds first.",
        f"2. `sawbones try initial-loss {command}`\n"
        "   A first loss far from an even guess: the loss, the labels or the initialisation.",
        *([] if ill else [f"3. `sawbones run {command}`, then name the symptom: "
                          "`sawbones explain \"what you see\"`"]),
        "## 15 minutes: which half?",
        *trials_of(command, ill),
        "## 60 minutes: the cause, and the proof",
        f"1. `sawbones diagnose --html report.html {command}`\n"
        "   All checks, the trials that separate what is left, and the line.",
        f"2. `sawbones fix {command}`\n   The patch, tried from the same seed.",
        f"3. `sawbones pin {command}`\n   A test that fails until it is mended.",
        "Out of time: hand over what is known (seed, command, symptom with its step, what each trial "
        "showed), not what is guessed.",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _known(run: Run | None, ill: Sequence[Symptom]) -> list[str]:
    if run is None:
        return []
    read = faults.read(run)
    lines = [f"- {s.symptom} ({s.cls}): {s.text}" for s in ill]
    where = f" {run.folder}" if run.folder else ""
    parts = [f"## Seen in the recording{where}", "\n".join(lines) or "- no symptom"]
    if read.findings:
        found = [f"- {f.fault} ({f.status}): {f.title}" for f in read.findings]
        parts += ["Suspects:", "\n".join(found)]
    named = {f.fault.partition(".")[0] for f in read.findings}
    silent = [fault.partition(".")[0] for fault in read.silent]
    blind = [one.fault.partition(".")[0] for one in read.could_not_look]
    cleared = [
        f"- {layer}: {silent.count(layer)} checks found nothing, {blind.count(layer)} could not look"
        for layer in LAYERS
        if layer in silent and layer not in named
    ]
    return [*parts, "Looked at, nothing found:", "\n".join(cleared) or "- nothing yet"]


def trials_of(command: str, ill: Sequence[Symptom]) -> list[str]:
    battery = next((BATTERIES[s.symptom] for s in ill if s.symptom in BATTERIES), ())
    if not battery:
        named = [f"{i}. `sawbones try {t} {command}`" for i, t in enumerate(_FIRST_TRIALS, 1)]
        return [
            "\n".join(named),
            "One batch that is learned clears model, loss and optimizer; one that is not clears the "
            "data. No worse without inputs: they never reach the loss.",
        ]
    rows = [f"1. `sawbones try overfit-one-batch {command}`: learned, look at the data; not "
            "learned, go on"]  # fmt: skip
    rows += [
        f"{i}. `sawbones try {rival.asked} {command}` heals: {rival.fault}"
        for i, rival in enumerate(battery[:MOST_RIVALS], 2)
    ]
    return ["\n".join(rows)]
