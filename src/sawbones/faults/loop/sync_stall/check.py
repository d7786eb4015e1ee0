"""The host waits for the device many times in every step

## What it sees
On a CUDA device, the lines of the training loop that bring values to the host (`.item()`, `.cpu()`,
`.tolist()`, `print`, a tensor as a condition), and how often each does so per optimizer step. Fires
at eight or more per step; three to seven are mentioned. Needs ten steps. On a CPU there is nothing
to wait for, and the check says that it could not look.

## Why it matters
Each such read waits until the device has finished everything it was given. Meanwhile nothing new is
launched, and the device then idles until the host has caught up.

## Looks like
A device that is busy half of the time, and a step that hardly gets faster with a smaller model.

## Example
    for name, p in model.named_parameters():
        log[name] = p.grad.norm().item()

## Use instead
    norms = torch.stack([p.grad.norm() for p in model.parameters()])
    if step % 100 == 0:
        log.update(zip(names, norms.tolist()))

## Confirm it
No experiment: the reads were counted. What they cost stands in `sawbones profile`.

## False alarms
One or two reads per step, the loss and perhaps a metric, are what most loops do. Reads during
evaluation are left out, and a line that reads in fewer than half of the steps is too.

## References
The PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.trace.locate import locate

NEEDS = ("syncs", "steps")
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 10  # the first few read sizes and settings once


def check(run: Run) -> Iterator[Finding]:
    steps = run.syncs.steps if run.syncs else 0
    if run.syncs is None or steps < MIN_STEPS:
        raise NothingToJudge(f"fewer than {MIN_STEPS} steps on the device")
    # A line that reads at fewer than half of the steps is no habit.
    lines = [row for row in run.syncs.lines if 2 * row.steps - steps >= 0]
    lines.sort(key=lambda row: -row.count)
    per_step = sum(row.count for row in lines) / steps
    if not limits.SYNCS_PER_STEP.suspected_by(per_step):
        return
    yield finding(
        f"The host waits for the device {per_step:.0f} times in every step",
        locate(*lines)[:4],
        (
            compared(
                f"{per_step:.1f} reads from the device per step over {steps} steps",
                per_step,
                limits.SYNCS_PER_STEP,
                expected=1,
                signal="syncs",
            ),
            *(
                context(
                    f"{row.op} {row.count / steps:.1f} times per step at {row.site}",
                    signal="syncs",
                )
                for row in lines[:3]
            ),
        ),
        Fix("Keep values on the device, gather them in one tensor, and read that every N steps."),
    )
