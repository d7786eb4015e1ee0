"""The loop waits for data most of the time

## What it sees
For every step, how long the loop waited for the next batch of a loader (without a loader: the time
from one step to the next call of the model) and how long the whole step took, deep steps left out.
Fires when the median of at least 20 steps waits longer than 60 ms and more than 85 % of its time,
in a run whose operators were not listened to. Under `diagnose` they are, which slows down the
model, and samples that are made of tensors: then, and from 30 ms and 60 % on, it is suspected and
measured again. On a machine with more work than cores nothing more than that is said.

## Why it matters
The model stands idle; the run takes several times as long as it has to.

## Looks like
Low use of the processor or GPU, steps that take as long for a tiny model as for a large one.

## Example
    def __getitem__(self, i):
        return decode(self.files[i]), self.labels[i]

## Use instead
    workers = min(8, len(os.sched_getaffinity(0)))  # more than there are cores makes it slower
    loader = DataLoader(dataset, num_workers=workers, persistent_workers=True, prefetch_factor=4)

## Confirm it
The script runs again without its operators being watched: confirmed when it then waits for more
than 85 % of its time.

## False alarms
Tiny examples wait longer than they compute, but not 30 ms per step; the first batch of an epoch
starts workers and is left out by the median. Steps that Sawbones itself slows down do not count.

## References
Decoding images in the main process, one remote request per sample, tokenizing in __getitem__.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.waiting import hears_operators, waiting
from sawbones.trace.feeding import feeding_sites, loader_sites, training_loader
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines

NEEDS = ("steps",)
USES = (
    "loaders",
    "data_code",
    "source_lines",
    "operators_heard",
    "source_calls",
    "cpu_time",
    "standing",
)
EXPLAINS = ()
EXPERIMENT = "waiting_measured"


def check(run: Run) -> Iterator[Finding]:
    found = waiting(run)
    if found is None:
        raise NothingToJudge("fewer than 20 steps were timed that no deep step slows down")
    if not (
        limits.WAITING_SHARE.suspected_by(found.share)
        and limits.WAITING_MS.suspected_by(found.wait_ms)
        and limits.LOW_WAIT_MS.reached_by(found.low_ms)
    ):
        return
    busy = limits.BUSY_SHARE.reached_by(run.cpu_time.waiting_share)
    sure = limits.WAITING_MS.reached_by(found.wait_ms) and not hears_operators(run) and not busy
    loader = training_loader(run)
    reads = run.data_code.reads
    reading = Site(reads[0], reads[1], "", "") if reads is not None else None
    how = (
        f"the loader has {loader.num_workers} workers"
        if loader
        else "batches are made between the steps, by hand"
    )
    text = (
        f"median wait {found.wait_ms:.1f} ms of {found.step_ms:.1f} ms per step, over "
        f"{found.steps} steps"
    )
    yield finding(
        f"The loop waits for data {found.share:.0%} of the time",
        locate(reading, *(loader_sites(run) if loader else _made_by_hand(run)))[:4],
        (
            compared(text, found.share, limits.WAITING_SHARE, signal="steps"),
            context(how, signal="steps"),
        ),
        Fix(
            "Prepare samples once instead of on every access, fetch many at a time, or "
            "let workers prepare them (num_workers)."
        ),
        at_most="likely" if sure else "suspected",
    )


def _made_by_hand(run: Run) -> tuple[Site, ...]:
    """Functions of the user's own that are called where samples are put together, then where the
    model is called.
    """
    inside = data_lines(run, "use")
    elsewhere = {s.function for s in feeding_sites(run)} | {"<module>", "__init__"}
    preparing = [s for s in inside if s.function not in elsewhere]
    return locate(*preparing[-1:], *feeding_sites(run))
