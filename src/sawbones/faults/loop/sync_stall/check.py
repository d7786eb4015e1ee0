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

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("syncs", "steps")
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 10
MANY = 8.0
SOME = 3.0
REGULAR = 0.5  # of the steps: a line that reads now and then is no habit


def check(run: Run) -> Iterator[Finding]:
    seen = run.facts["syncs"]
    steps = int(seen["steps"])
    if steps < MIN_STEPS:
        return
    lines = sorted(
        (row for row in seen["lines"] if row["steps"] >= REGULAR * steps),
        key=lambda row: -int(row["count"]),
    )
    per_step = sum(int(row["count"]) for row in lines) / steps
    if per_step < SOME:
        return
    many = per_step >= MANY
    evidence = [
        Evidence(
            f"{per_step:.1f} reads from the device per step over {steps} steps",
            "syncs",
            (),
            per_step,
            1.0,
        )
    ]
    for row in lines[:3]:
        evidence.append(
            Evidence(
                (
                    f"{row['op']} {int(row['count']) / steps:.1f} times per step at "
                    f"{as_site(row['site'])}"
                ),
                "syncs",
            )
        )
    yield Finding(
        "loop.sync-stall",
        "likely" if many else "suspected",
        0.88 if many else 0.3,
        f"The host waits for the device {per_step:.0f} times in every step",
        places(*(as_site(row["site"]) for row in lines))[:4],
        tuple(evidence),
        Fix("Keep values on the device, gather them in one tensor, and read that every N steps."),
    )
