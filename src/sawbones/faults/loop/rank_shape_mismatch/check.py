"""Ranks that see different batches, shapes or collectives, and wait for each other

## What it sees
The collectives of every rank in order, with operator and shape, and under DistributedDataParallel
its backward passes, which reduce gradients. Fires when two ranks make different ones at the same
place of that order, or when the ranks hang, abort or part and one of them has made more than
another. A hang is seen 15 seconds after its start: every rank that is left stands still inside of a
distributed call, and not at the same one.

## Why it matters
A collective ends when every rank has made it. One rank that makes another one, or none, stops all
of them for ever, or mixes up tensors that have nothing to do with each other.

## Looks like
A job that stands still at 0 % at the end of an epoch or at an evaluation; "Connection closed by
peer"; a timeout of NCCL after ten minutes or half an hour.

## Example
    if rank == 0:
        dist.all_reduce(total)

## Use instead
    dist.all_reduce(total)
    if rank == 0:
        print(total)

## Confirm it
No experiment: the order of collectives was recorded on every rank.

## False alarms
Rank 0 may evaluate, save or download for minutes while the others wait at a barrier: it is not
waiting itself. Groups of some ranks have an order of their own and are not compared. Ranks that a
time budget stopped at different steps are not compared in length. A rank that failed for a reason
of its own takes the others with it; its error is the cause.

## References
The documentation of DistributedDataParallel: uneven inputs and the join context manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.ranks import everyone, training_sites, wrapped
from sawbones.trace.locate import locate

NEEDS = ("ranks",)
USES = ("agreement", "aborted", "last_collectives", "hang", "loaders", "source_calls")
EXPLAINS = (
    "loop.rank-desync",
    "loop.gradient-not-reduced",
    "loop.nondeterminism",
    "pipeline.starved",
    "loop.rank-same-data",
    "loop.accumulation-remainder",
    "loop.no-step",
)
EXPERIMENT = None
# How torch says that other ranks are gone: such an error is a consequence.
CONNECTION = re.compile(
    r"connection (closed|reset|refused)|broken pipe|gloo|nccl|collective|process "
    r"?group|socket timeout|timed out|"
    r"expects same model across all ranks|all_?(reduce|gather)|size doesn't match",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Call:
    op: str
    shape: tuple[int, ...]
    site: Site | None
    step: int
    callers: tuple[Site, ...] = ()  # around the site, from inside to outside

    def __str__(self) -> str:
        shape = f" of {list(self.shape)}" if self.shape else ""
        return f"{self.op}{shape}" + (f" at {self.site}" if self.site else "")


Order = Sequence[Call | None]


def check(run: Run) -> Iterator[Finding]:
    ranks = everyone(run)
    endings = {r.ending.kind for r in ranks}
    errors = [r.ending.message or "" for r in ranks if r.ending.kind == "exception"]
    if any(not CONNECTION.search(e) or "finished reduction" in e for e in errors):
        return
    aborted = any(r.aborted for r in ranks)
    # Ranks that all came to their end made the same backward passes under the wrapper: others were
    # one rank's own affair.
    passes = not aborted and endings != {"finished"} and wrapped(run) is not None
    ours, *others = (_order(r, passes) for r in ranks)
    hangs = "hang" in endings
    if not ours and not any(others) and not hangs:
        raise NothingToJudge("no rank made a collective of all ranks")
    for other, theirs in zip(ranks[1:], others, strict=True):
        index = _parting(ours, theirs)
        if index is None:
            continue
        inside = index < len(ours) and index < len(theirs)
        stopped = hangs or errors or aborted
        if not inside and (not stopped or endings & {"budget", "interrupted"}):
            continue
        yield _finding(run, other, ours, theirs, index, hangs)
        return
    if hangs:
        yield _from_positions(run)


def _order(run: Run, passes: bool) -> list[Call | None]:
    """Collectives in order; of an aborted rank the last ones come from memory that outlives it, and
    some between may be unknown.
    """
    found: list[Call | None] = []
    for event in run.events:
        if event.kind == "collective" and event.data.get("group", run.world_size) == run.world_size:
            found.append(_call(event.data, event.site, event.step))
        elif event.kind == "backward" and passes:
            found.append(Call("backward", (), event.site, event.step))
    made = len(run.of_kind("collective"))
    # Those that an abort kept from being recorded as events.
    for row in run.last_collectives:
        missing = row.number - made
        if missing >= 0:
            found += [None] * missing
            made = row.number + 1
            found.append(Call(row.op, row.shape, row.site, row.step, row.callers))
    return found


def _call(row: Mapping[str, Any], site: Site | None, step: int) -> Call:
    callers = tuple(
        Site(str(c[0]), int(c[1]), str(c[2]), str(c[3])) for c in row.get("callers") or ()
    )
    return Call(str(row.get("op")), tuple(row.get("shape") or ()), site, step, callers)


def _parting(ours: Order, theirs: Order) -> int | None:
    """Where two orders part: at different calls, or where one of them ends."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a is not None and b is not None and (a.op, a.shape) != (b.op, b.shape):
            return i
    return min(len(ours), len(theirs)) if len(ours) != len(theirs) else None


def _finding(run: Run, other: Run, ours: Order, theirs: Order, at: int, hangs: bool) -> Finding:
    a, b = list(zip_longest(ours, theirs))[at]
    known = a or b
    texts = [
        f"rank {r.rank}: collective {at} is {call or 'none any more'}"
        for r, call in ((run, a), (other, b))
    ]
    evidence = [
        exact("; ".join(texts), 1, signal="ranks", steps=(known.step if known is not None else 0,))
    ]
    batches = [len(r.of_kind("backward")) for r in (run, other)]
    # The last events of an aborted rank are lost, so they cannot be counted.
    aborted = run.aborted or other.aborted
    apart = not aborted and _part_in_batches(a, b, batches) and not _same_length(run, other)
    if apart:
        text = f"rank {run.rank} trained on {batches[0]} batches, rank {other.rank} on {batches[1]}"
        evidence.insert(0, exact(text, batches[1], expected=batches[0], signal="ranks"))
    # One line, two shapes: the batches differ.
    cut = long = False
    if a is not None and b is not None:
        cut = (a.op, a.site) == (b.op, b.site)
        long = cut and _differ_in_length(a.shape, b.shape)
    what, fix = _in_words(apart, cut, long)
    return finding(
        f"The ranks {'wait for each other for ever' if hangs else 'part ways'}: {what}",
        locate(
            *((*_collating(run), known.site) if long and known is not None else ()),
            *(training_sites(run)[:2] if apart or cut else ()),
            _chosen(a, other, theirs),
            _chosen(b, run, ours),
            *_lonely(ours, theirs, a, b),
        )[:4],
        (*evidence, *(context(text, signal="ranks") for text in _standing(run))),
        Fix(fix),
    )


def _in_words(apart: bool, cut: bool, long: bool) -> tuple[str, str]:
    same_batches = (
        "Give every rank the same number and size of batches (DistributedSampler, "
        "drop_last=True), or train under model.join()."
    )
    one_length = (
        "Pad to one length on every rank before the call (a fixed one, or the largest of "
        "all ranks by all_reduce with MAX)."
    )
    if apart:
        return "one of them has more batches", one_length if long else same_batches
    if long:
        return "their batches differ in length", one_length
    if cut:
        return "their batches differ in size", same_batches
    return "they do not make the same collectives", (
        "Make every collective on every rank, in one order and with one shape: take it "
        "out of code that only some ranks run."
    )


def _differ_in_length(a: Sequence[int], b: Sequence[int]) -> bool:
    """As many samples on both, and the samples of one are longer."""
    return len(a) == len(b) >= 2 and a[0] == b[0] and tuple(a[1:]) != tuple(b[1:])


def _collating(run: Run) -> tuple[Site, ...]:
    """The user's function that pads the samples of a batch."""
    return locate(*(loader.collate_site for loader in run.loaders))[:1]


def _from_positions(run: Run) -> Finding:
    """No collective was recorded that differs: the positions at which the ranks stood are what is
    known.
    """
    texts = _standing(run)
    waiting = sum(not p.ended for p in run.hang)
    return finding(
        "The ranks wait for each other for ever",
        locate(*run.hang)[:4],
        (
            *(exact(text, waiting, signal="ranks") for text in texts[:1]),
            *(context(text, signal="ranks") for text in texts[1:]),
        ),
        Fix("Make every distributed call on every rank, in one order and with one shape."),
        at_most="likely",
    )


def _standing(run: Run) -> list[str]:
    found = []
    for p in run.hang:
        last = ", ".join(
            f"{kind} {file}:{line}" if file else str(kind) for kind, _, file, line in p.last[-4:]
        )
        call = p.op or "a distributed call"
        doing = "has ended" if p.ended else f"stands at {p.site}, in {call}"
        found.append(f"rank {p.rank} {doing}; its last events: {last}")
    return found


def _part_in_batches(a: Call | None, b: Call | None, batches: Sequence[int]) -> bool:
    """One rank has a batch more: its next call is of another pass, and the other rank is past its
    last one.
    """
    if batches[0] == batches[1]:
        return False
    more, less = (a, b) if batches[0] - batches[1] > 0 else (b, a)
    return less is None or more is None or more.op == "backward" or less.site != more.site


def _same_length(run: Run, other: Run) -> bool:
    """Both train from loaders of one length: a rank that is a batch ahead went on while the other
    waits in a call of its own.
    """
    lengths = []
    for rank in (run, other):
        used = {b.source for b in rank.batches if b.phase == "train"}
        lengths.append({loader.length for loader in rank.loaders if loader.source in used})
    return lengths[0] == lengths[1] and len(lengths[0]) == 1 and None not in lengths[0]


def _chosen(call: Call | None, other: Run, made: Order) -> Site | None:
    """Where one rank went a way of its own: the innermost line around its call that the other rank,
    which was in that function too, never ran. A function that makes the collective for whoever
    calls it is not the place.
    """
    if call is None or call.op == "backward" or call.site is None:
        return None
    theirs = [e.site for e in other.events if e.site is not None]
    theirs += [s for c in made if c is not None for s in (c.site, *c.callers) if s is not None]
    lines, functions = {(s.file, s.line) for s in theirs}, {(s.file, s.function) for s in theirs}
    for site in (call.site, *call.callers):
        if (site.file, site.line) not in lines and (site.file, site.function) in functions:
            return site
    return None


def _lonely(ours: Order, theirs: Order, a: Call | None, b: Call | None) -> list[Site | None]:
    """The line of the two that only one of the ranks ever comes to goes first."""
    known = ({c.site for c in ours if c}, {c.site for c in theirs if c})
    alone = [
        c.site
        for c, others in ((a, known[1]), (b, known[0]))
        if c is not None and c.site not in others
    ]
    return [*alone, *(c.site for c in (a, b) if c is not None)]
