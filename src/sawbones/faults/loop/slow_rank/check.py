"""One rank is slower than the others, which wait for it

## What it sees
On every rank, the time from one optimizer step to where the ranks meet (the backward pass under
DDP, or the script's first collective), and the time from there to the end of the step. Fires when
one rank comes last in three quarters of 20 or more ordinary steps, by 10 ms and a quarter of the
step in the middle one, with no more values in its batches than the others, and the meeting takes
the others longer by at least half of that. From nine tenths of the steps on it is clear. On a
machine with more work than cores it is never more than suspected. Where the extra time goes is seen
by looking at the training thread of every rank a hundred times a second.

## Why it matters
Every step ends when the last rank has come. One slow device, disk or line of code costs the time of
all of them.

## Looks like
Devices that are busy half of the time, all but one; more ranks make a step no faster.

## Example
    scores = model(batch)
    if rank == 0:
        log_spectra(model)  # the others wait for it in the backward pass
    loss(scores, labels).backward()

## Use instead
    scores = model(batch)
    if rank == 0 and step % 500 == 0:
        log_spectra(model)
    loss(scores, labels).backward()

## Confirm it
Swap the ranks between machines (another order of hosts, or CUDA_VISIBLE_DEVICES): when the slow one
moves along it is the machine, when the number stays it is the code or the data of that rank.

## False alarms
A rank that is last now and then, as every rank is; larger batches, which are pipeline.uneven-ranks.
Devices compute behind the host's back: a slow one is seen only where the host waits for it before
the ranks meet.

## References
Stragglers in synchronous data parallel training; a throttled or shared device; work that only rank
0 does.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import pipeline as busy_limits
from sawbones.evidence.limits import stalls as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.rank_time import Lag, extra_lines, lag, work_ratio
from sawbones.stats.ranks import everyone, training_sites
from sawbones.trace.locate import locate

PREVIEW = True
NEEDS = ("ranks", "steps", "events")
USES = (
    "standing",
    "own_ms",
    "cpu_time",
    "agreement",
    "loaders",
    "source_calls",
    "events_in_full",
)
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 20
MOST_SITES = 4


def check(run: Run) -> Iterator[Finding]:
    found = lag(run, MIN_STEPS)
    if found is None:
        raise NothingToJudge(f"no ranks that meet in {MIN_STEPS} ordinary steps")
    if (
        not limits.LAST_RANK.suspected_by(found.times / found.steps)
        or not limits.LAG_MS.reached_by(found.lag_ms)
        or not limits.LAG_SHARE.reached_by(found.lag_ms / found.step_ms)
        or not limits.MIRRORED.reached_by(found.wait_ms / found.lag_ms)
        or limits.SAME_WORK.reached_by(work_ratio(run, found.rank))
    ):
        return
    slow = everyone(run)[found.rank]
    busy = any(busy_limits.BUSY_SHARE.reached_by(r.cpu_time.waiting_share) for r in everyone(run))
    yield finding(
        f"Rank {slow.rank} is {found.lag_ms:.0f} ms slower than the others in every step, and they "
        "wait for it",
        _where(run, slow, found),
        (*_readings(found, slow.rank), *_reasons(run, slow, found)),
        Fix(
            "Do on all ranks what this one does alone, or do it less often; if the rank moves with "
            "its machine, replace or unload that machine."
        ),
        at_most="suspected" if busy else "likely",
    )


def _readings(found: Lag, rank: int) -> tuple[Evidence, ...]:
    text = (
        f"it comes {found.lag_ms:.0f} ms later than the next one to where the ranks meet, of a step "
        f"of {found.step_ms:.0f} ms; the meeting takes the others {found.wait_ms:.0f} ms longer"
    )
    last = f"rank {rank} is the last one in {found.times} of {found.steps} steps"
    share = found.lag_ms / found.step_ms
    return (
        compared(text, share, limits.LAG_SHARE, expected=0, signal="events"),
        counted(last, found.times, found.steps, limits.LAST_RANK, signal="events"),
    )


def _before_the_model(found: Lag) -> bool:
    return 2 * found.between_ms - found.lag_ms > 0


def _reasons(run: Run, slow: Run, found: Lag) -> Iterator[Evidence]:
    phase = (
        "between the step and the call of the model"
        if _before_the_model(found)
        else "between the call of the model and where the ranks meet"
    )
    yield context(f"the time is lost {phase}", signal="events")
    for site, seconds in extra_lines(run, found.rank)[:2]:
        yield context(
            f"{seconds:.2g} s more than the others at {site.file}:{site.line}", signal="standing"
        )
    for wait in slow.standing.waits[:1] if slow.standing is not None else ():
        yield context(f"asleep in {wait.call}() for {wait.seconds:.2g} s", signal="standing")
    share = slow.cpu_time.waiting_share
    if busy_limits.BUSY_SHARE.reached_by(share):
        yield context(f"its threads stand in the queue for a core {share:.0%} of the time")


def _where(run: Run, slow: Run, found: Lag) -> tuple[Site, ...]:
    calls = [e.site for e in slow.of_kind("forward") if e.phase == "train"][:1]
    usual = training_sites(slow) if _before_the_model(found) else tuple(calls)
    return locate(*(site for site, _ in extra_lines(run, found.rank)[:2]), *usual)[:MOST_SITES]
