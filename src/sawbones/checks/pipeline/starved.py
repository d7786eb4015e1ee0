"""The loop waits for data most of the time

## What it sees
For every step, how long the loop waited for the next batch of a loader and how long the whole step took, deep steps left out. Fires
when the median step waits longer than 15 ms and more than 80 % of its time, over at least 20 steps.

## Why it matters
The model stands idle; the run takes several times as long as it has to.

## Looks like
Low use of the processor or GPU, steps that take as long for a tiny model as for a large one.

## Example
    def __getitem__(self, i):
        return decode(self.files[i]), self.labels[i]

## Use instead
    loader = DataLoader(dataset, num_workers=8, persistent_workers=True, prefetch_factor=4)

## Confirm it
Nothing is left to confirm: waiting and working are timed.

## False alarms
Tiny examples wait longer than they compute, but not 15 ms per step; the first batch of an epoch starts workers and is left out by
the median. Steps that Sawbones itself slows down do not count.

## References
Decoding images in the main process, one remote request per sample, tokenizing in __getitem__.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import data_function, loader_sites, training_loader
from sawbones.stats.loss_calls import places

NEEDS = ("steps", "loaders")
EXPLAINS = ()
EXPERIMENT = None
SHARE = 0.8
WAIT_MS = 15.0


def check(run: Run) -> Iterator[Finding]:
    wait, spent, deep = run.steps["data_wait_ms"], run.steps["step_ms"], run.steps["deep"]
    plain = (deep == 0) & np.isfinite(wait) & np.isfinite(spent) & (spent > 0)
    plain[:3] = False
    after = np.concatenate([[False], deep[:-1] > 0])  # what follows a deep step still pays for it
    plain &= ~after
    if plain.sum() < 20:
        return
    waits, steps = wait[plain], spent[plain]
    share, middle = float(np.median(waits / np.maximum(steps, waits))), float(np.median(waits))
    loader = training_loader(run)
    if share < SHARE or middle < WAIT_MS or float(np.percentile(waits, 25)) < WAIT_MS / 2 or loader is None:
        return
    reads = data_function(run, "reads")
    reading = Site(reads[0], reads[1], "", "") if reads is not None else None
    workers = int(loader.get("num_workers") or 0)
    yield Finding(
        "pipeline.starved",
        "likely",
        0.85,
        f"The loop waits for data {share:.0%} of the time",
        places(reading, *loader_sites(run))[:4],
        (
            Evidence(
                f"median wait {middle:.1f} ms of {float(np.median(steps)):.1f} ms per step, over {int(plain.sum())} steps",
                "steps",
                value=share,
                expected=0.2,
            ),
            Evidence(f"the loader has {workers} workers", "loaders", value=float(workers)),
        ),
        Fix("Prepare samples once instead of on every access, fetch many at a time, or let workers prepare them (num_workers)."),
    )
