"""Run the script on two ranks, and on one rank with batches twice as large: the same global batch.
No dropout in either.

Measured: over the first steps, the mean loss of the ranks and the gradient norm of every rank at
the optimizer step, against those of the single rank. Confirmed (the ranks do not add up to one
process) when a gradient norm or the mean loss is off by more than 1 %; refuted when all agree. Open
when the script is not distributed, makes its batches without a DataLoader, or normalises over the
batch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

STEPS = 4
OFF = 0.01
NAME = "one_rank_against_two"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    patient = bench.patient
    if patient.num_ranks == 1 and run.ranks:
        return Verdict(
            NAME, "open", "the script starts its processes itself, always as many as it wants"
        )
    if any("BatchNorm" in m.cls and "Sync" not in m.cls for m in run.modules):
        return Verdict(
            NAME,
            "open",
            "batch normalisation uses the statistics of each rank, so the two may differ",
        )
    calm = Remedy("dropout_off")
    two = bench.rerun([calm], max_steps=STEPS, patient=replace(patient, num_ranks=2))
    if not two.ranks:
        return Verdict(NAME, "open", "the script did not start on two ranks")
    if not two.of_kind("parallel", "collective"):
        return Verdict(
            NAME, "open", "the script does not communicate: two ranks are two separate runs"
        )
    larger = Remedy("larger_batches", {"factor": 2})
    one = bench.rerun(
        [calm, larger], max_steps=STEPS, patient=replace(patient, num_ranks=1, torchrun=True)
    )
    steps = min(r.num_steps for r in (one, two, *two.ranks))
    if not steps or not one.remedies.get("larger_batches"):
        return Verdict(
            NAME,
            "open",
            "the two runs have no step in common, or the batches do not come from a DataLoader",
        )
    return _judge(one, (two, *two.ranks), steps)


def _judge(one: Run, ranks: tuple[Run, ...], steps: int) -> Verdict:
    mean = np.mean([r.losses[:steps] for r in ranks], axis=0)
    for step in range(steps):
        single = float(one.steps["grad_norm"][step])
        norms = [float(r.steps["grad_norm"][step]) for r in ranks]
        text = (
            f"step {step}: gradient norm {', '.join(f'{n:.4g}' for n in norms)} on the ranks "
            f"and {single:.4g} on one; loss "
        )
        text += f"{mean[step]:.4g} and {one.losses[step]:.4g}"
        gaps = [abs(n - single) / max(abs(single), 1e-12) for n in norms]
        gaps.append(abs(mean[step] - one.losses[step]) / max(abs(float(one.losses[step])), 1e-12))
        if not max(gaps) <= OFF:
            return Verdict(NAME, "confirmed", text, norms[0], single)
    return Verdict(
        NAME, "refuted", f"two ranks and one agree over {steps} steps; {text}", norms[0], single
    )
