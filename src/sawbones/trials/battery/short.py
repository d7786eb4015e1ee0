"""Before the long run: a few training batches, one evaluation, a checkpoint, a resume.

Every DataLoader ends after a few batches, so that the end of an epoch is reached at once; the run
is cut after some dozen steps or half a minute. Then it is stopped after its first checkpoint and
started again. Confirmed when something breaks: an error, a loss that is not finite, a resumed run
that goes another way. Refuted when all that was reached works; what was not reached is said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from sawbones.schema import Event, Finding, Run, Verdict
from sawbones.trials import trial
from sawbones.trials.bench import Bench, ChildFailed
from sawbones.trials.child import Remedy

NAME = "short"
STEPS = 40  # a few epochs of a few batches
SECONDS = 30.0


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    shorter = [
        Remedy("short_loaders", {"count": finding.params.get("batches", 4)}),
        Remedy("hashed_checkpoints"),
    ]
    seen = bench.rerun(shorter, max_steps=STEPS, seconds=SECONDS)
    if seen.ending.kind == "exception":
        text = f"the script fails: {seen.ending.exception}: {seen.ending.message}"
        at = f" ({_place(seen.ending.site)})" if seen.ending.site is not None else ""
        return Verdict(NAME, "confirmed", f"{text[:300]}{at}")
    if not seen.num_steps:
        return Verdict(NAME, "open", f"no optimizer step in {SECONDS:.0f} s")
    bad = np.flatnonzero(~np.isfinite(seen.losses))
    if len(bad):
        return Verdict(NAME, "confirmed", f"the loss is {seen.losses[bad[0]]} at step {bad[0]}")
    said = [
        f"{seen.num_steps} training steps, loss {seen.losses[0]:.4g} -> {seen.losses[-1]:.4g}",
        _evaluated(seen),
        _saved(seen),
    ]
    resumed = _resumed(bench, replace(finding, params={"remedies": shorter}), seen)
    outcome = "refuted" if resumed.outcome == "open" else resumed.outcome
    said.append(f"resume: {resumed.result}")
    return Verdict(NAME, outcome, "; ".join(said), resumed.baseline, resumed.with_remedy)


def _evaluated(run: Run) -> str:
    calls = [e for e in run.of_kind("forward") if not e.data.get("grad")]
    if not calls:
        return f"no evaluation was reached in {run.num_steps} steps"
    return f"evaluation: {len(calls)} model calls without gradients{_at(calls[0])}"


def _saved(run: Run) -> str:
    saves = run.of_kind("save")
    if not saves:
        return f"no checkpoint was reached in {run.num_steps} steps"
    kinds = ", ".join(saves[0].data.get("kinds", ())) or "nothing that is known"
    return f"checkpoint after step {saves[0].step}: {kinds}{_at(saves[0])}"


def _resumed(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not run.of_kind("save"):
        return Verdict(NAME, "open", "not tried without a checkpoint")
    try:
        return trial("resume_equivalence")(bench, finding, run)
    except ChildFailed as error:
        return Verdict(NAME, "open", str(error).splitlines()[0])


def _at(event: Event) -> str:
    return f" ({_place(event.site)})" if event.site is not None else ""


def _place(site: object) -> str:
    return Path(str(site)).name
