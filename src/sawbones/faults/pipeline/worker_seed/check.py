"""Loader workers that draw one and the same random stream

## What it sees
After the run, copies of the data set are seeded as two workers, and as one worker in two epochs,
would be; the worker_init_fn is called for each; the same samples are read from all of them. Fires
when samples are drawn at random (two reads of one copy differ), and two workers, or a worker in two
epochs, draw exactly the same. An IterableDataset is read from its start as two workers would; fires
when they get the same samples.

## Why it matters
Augmentation repeats: with n workers every random choice comes n times, or every epoch shows the
same variants again.

## Looks like
Nothing but a somewhat larger gap between training and validation.

## Example
    def worker_init(worker_id):
        np.random.seed(0)

## Use instead
    def worker_init(worker_id):
        np.random.seed(torch.initial_seed() % 2**32)

## Confirm it
Nothing is left to confirm: the draws are compared value by value.

## False alarms
A data set that gives every index its own fixed variant draws nothing when it is read twice. torch,
random and NumPy's global streams are seeded per worker by the loader. Without workers there is one
stream. One epoch cannot repeat.

## References
Most public projects with NumPy augmentation had this fault before PyTorch seeded NumPy in workers;
a generator held by the data set still has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.labels import Redraw
from sawbones.trace.feeding import loader_sites, training_batches
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of, lines_in

NEEDS = ("loaders", "redraw")
USES = ("data_code", "source_calls")
EXPLAINS = ()
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    drawn = run.redraw
    if drawn is None or drawn.alike is None:
        raise NothingToJudge("samples are not drawn at random, or no worker draws them")
    if drawn.stream:
        yield from _one_stream(run, drawn, drawn.alike.workers)
        return
    if not limits.DRAWN_AT_RANDOM.reached_by(drawn.changed):
        return
    workers, both = drawn.num_workers, drawn.alike
    epochs = 1 + max((b.epoch for b in training_batches(run)), default=0)
    between_workers = workers >= 2 and limits.DRAWN_ALIKE.reached_by(both.workers)
    between_epochs = epochs >= 2 and limits.DRAWN_ALIKE.reached_by(both.epochs)
    if not between_workers and not between_epochs:
        return
    seeding = run.data_code.seeds
    seeded = Site(seeding[0], seeding[1] + 1, "", "") if seeding is not None else None
    who = f"{workers} workers" if between_workers else f"each worker in all {epochs} epochs"
    text = (
        f"two workers read {both.workers:.0%} of {drawn.samples} samples alike, one "
        f"worker in two epochs {both.epochs:.0%}; two reads by one worker differ in "
        f"{drawn.changed:.0%}"
    )
    alike = both.workers if between_workers else both.epochs
    yield finding(
        f"The same random stream for {who}",
        locate(seeded, *loader_sites(run))[:4],
        (compared(text, alike, limits.DRAWN_ALIKE, expected=0, signal="redraw"),),
        Fix(
            "Seed every worker from torch.initial_seed() (or get_worker_info().seed) in "
            "worker_init_fn."
        ),
    )


def _one_stream(run: Run, drawn: Redraw, alike: float) -> Iterator[Finding]:
    if not limits.DRAWN_ALIKE.reached_by(alike):
        return
    reads = run.data_code.reads
    inside = lines_in(calls_of(run, ("draw", "seed")), reads)
    start = Site(reads[0], reads[1], "", "") if reads is not None else None
    text = (
        f"two of {drawn.num_workers} workers begin with the same {drawn.samples} samples "
        f"({alike:.0%})"
    )
    yield finding(
        f"Each of {drawn.num_workers} workers reads the same stream",
        locate(*inside[:1], start, *loader_sites(run))[:4],
        (compared(text, alike, limits.DRAWN_ALIKE, expected=0, signal="redraw"),),
        Fix(
            "Give every worker its own part: seed or slice the stream by "
            "torch.utils.data.get_worker_info().id."
        ),
    )
