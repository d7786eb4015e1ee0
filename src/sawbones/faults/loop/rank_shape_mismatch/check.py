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
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site
from sawbones.stats.ranks import everyone, training_sites, wrapped

NEEDS = ("ranks",)
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
CONNECTION = re.compile(
    r"connection (closed|reset|refused)|broken pipe|gloo|nccl|collective|process ?group|socket timeout|timed out|"
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


def check(run: Run) -> Iterator[Finding]:
    ranks = everyone(run)
    failed = [r for r in ranks if r.ending.kind == "exception"]
    if any(
        not CONNECTION.search(r.ending.message or "")
        or "finished reduction" in (r.ending.message or "")
        for r in failed
    ):
        return
    aborted = any(r.facts.get("aborted") for r in ranks)
    # Ranks that all came to their end made the same backward passes under the wrapper: others were
    # one rank's own affair.
    ended = all(r.ending.kind == "finished" for r in ranks)
    orders = [
        _order(r, passes=not aborted and not ended and wrapped(run) is not None) for r in ranks
    ]
    hangs = any(r.ending.kind == "hang" for r in ranks)
    for other, theirs in zip(ranks[1:], orders[1:], strict=True):
        at = _parting(orders[0], theirs)
        if at is None:
            continue
        inside = at < min(len(orders[0]), len(theirs))
        if not inside and not (hangs or failed or aborted):
            continue
        if not inside and any(r.ending.kind in ("budget", "interrupted") for r in ranks):
            continue
        yield _finding(run, other, orders[0], theirs, at, hangs)
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
    for row in (
        run.facts.get("last_collectives") or ()
    ):  # those that an abort kept from being recorded as events
        if row["number"] >= made:
            found += [None] * (row["number"] - made)
            made = row["number"] + 1
            found.append(_call(row, as_site(row["site"]), int(row["step"])))
    return found


def _call(row: Mapping[str, Any], site: Site | None, step: int) -> Call:
    callers = tuple(
        Site(str(c[0]), int(c[1]), str(c[2]), str(c[3])) for c in row.get("callers") or ()
    )
    return Call(str(row.get("op")), tuple(row.get("shape") or ()), site, step, callers)


def _parting(ours: Sequence[Call | None], theirs: Sequence[Call | None]) -> int | None:
    """Where two orders part: at different calls, or where one of them ends."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a is not None and b is not None and (a.op, a.shape) != (b.op, b.shape):
            return i
    return min(len(ours), len(theirs)) if len(ours) != len(theirs) else None


def _finding(
    run: Run,
    other: Run,
    ours: Sequence[Call | None],
    theirs: Sequence[Call | None],
    at: int,
    hangs: bool,
) -> Finding:
    a, b = (order[at] if at < len(order) else None for order in (ours, theirs))
    known = a or b
    step = known.step if known is not None else 0
    texts = [
        f"rank {r.rank}: collective {at} is {call or 'none any more'}"
        for r, call in ((run, a), (other, b))
    ]
    batches = [_trained(r) for r in (run, other)]
    evidence = [Evidence("; ".join(texts), "ranks", (step,))]
    aborted = bool(
        run.facts.get("aborted") or other.facts.get("aborted")
    )  # its last events are lost, so they cannot be counted
    apart = not aborted and _part_in_batches(a, b, batches) and not _same_length(run, other)
    if apart:
        text = f"rank {run.rank} trained on {batches[0]} batches, rank {other.rank} on {batches[1]}"
        evidence.insert(0, Evidence(text, "ranks", (), float(batches[1]), float(batches[0])))
    evidence += [Evidence(text, "ranks") for text in _standing(run)]
    cut = (
        a is not None and b is not None and (a.op, a.site) == (b.op, b.site)
    )  # one line, two shapes: the batches differ
    places: list[Site | None] = [*training_sites(run)[:2]] if apart or cut else []
    long = cut and a is not None and b is not None and _differ_in_length(a.shape, b.shape)
    if long:
        places = [*_collating(run), known.site if known is not None else None, *places]
    places += _chosen(a, other, theirs), _chosen(b, run, ours)
    places += _lonely(ours, theirs, a, b)
    how = "wait for each other for ever" if hangs else "part ways"
    what = (
        "one of them has more batches"
        if apart
        else "their batches differ in length"
        if long
        else "their batches differ in size"
        if cut
        else "they do not make the same collectives"
    )
    if long:
        fix = (
            "Pad to one length on every rank before the call (a fixed one, or the largest of "
            "all ranks by all_reduce with MAX)."
        )
    elif apart or cut:
        fix = (
            "Give every rank the same number and size of batches (DistributedSampler, "
            "drop_last=True), or train under model.join()."
        )
    else:
        fix = (
            "Make every collective on every rank, in one order and with one shape: take it "
            "out of code that only some ranks run."
        )
    return Finding(
        "loop.rank-shape-mismatch",
        "proven",
        0.96,
        f"The ranks {how}: {what}",
        tuple(dict.fromkeys(p for p in places if p is not None))[:4],
        tuple(evidence),
        Fix(fix),
    )


def _differ_in_length(a: Sequence[int], b: Sequence[int]) -> bool:
    """As many samples on both, and the samples of one are longer."""
    return len(a) == len(b) >= 2 and a[0] == b[0] and tuple(a[1:]) != tuple(b[1:])


def _collating(run: Run) -> list[Site | None]:
    """The user's functions that pad the samples of a batch."""
    return list(
        dict.fromkeys(as_site(x.get("collate_site")) for x in run.facts.get("loaders") or ())
    )[:1]


def _from_positions(run: Run) -> Finding:
    """No collective was recorded that differs: the positions at which the ranks stood are what is
    known.
    """
    places = [as_site(p.get("site")) for p in run.facts.get("hang") or ()]
    return Finding(
        "loop.rank-shape-mismatch",
        "likely",
        0.9,
        "The ranks wait for each other for ever",
        tuple(dict.fromkeys(p for p in places if p is not None))[:4],
        tuple(Evidence(text, "ranks") for text in _standing(run)),
        Fix("Make every distributed call on every rank, in one order and with one shape."),
    )


def _standing(run: Run) -> list[str]:
    found = []
    for p in run.facts.get("hang") or ():
        site = as_site(p.get("site"))
        last = ", ".join(
            f"{kind} {file}:{line}" if file else str(kind) for kind, _, file, line in p["last"][-4:]
        )
        doing = (
            "has ended" if p["ended"] else f"stands at {site}, in {p['op'] or 'a distributed call'}"
        )
        found.append(f"rank {p['rank']} {doing}; its last events: {last}")
    return found


def _trained(run: Run) -> int:
    return sum(1 for e in run.of_kind("backward"))


def _part_in_batches(a: Call | None, b: Call | None, batches: Sequence[int]) -> bool:
    """One rank has a batch more: its next call is of another pass, and the other rank is past its
    last one.
    """
    if batches[0] == batches[1]:
        return False
    more, less = (a, b) if batches[0] > batches[1] else (b, a)
    return less is None or more is None or more.op == "backward" or less.site != more.site


def _same_length(run: Run, other: Run) -> bool:
    """Both train from loaders of one length: a rank that is a batch ahead went on while the other
    waits in a call of its own.
    """
    lengths = []
    for rank in (run, other):
        used = {b.source.removeprefix("loader:") for b in rank.batches if b.phase == "train"}
        lengths.append(
            {
                row.get("length")
                for row in rank.facts.get("loaders") or ()
                if str(row["index"]) in used
            }
        )
    return lengths[0] == lengths[1] and len(lengths[0]) == 1 and None not in lengths[0]


def _chosen(call: Call | None, other: Run, made: Sequence[Call | None]) -> Site | None:
    """Where one rank went a way of its own: the innermost line around its call that the other rank,
    which was in that function
    too, never ran. A helper that makes the collective for whoever calls it is not the place."""
    if call is None or call.op == "backward" or call.site is None:
        return None
    theirs = [e.site for e in other.events if e.site is not None]
    theirs += [s for c in made if c is not None for s in (c.site, *c.callers) if s is not None]
    lines, functions = {(s.file, s.line) for s in theirs}, {(s.file, s.function) for s in theirs}
    for site in (call.site, *call.callers):
        if (site.file, site.line) not in lines and (site.file, site.function) in functions:
            return site
    return None


def _lonely(
    ours: Sequence[Call | None], theirs: Sequence[Call | None], a: Call | None, b: Call | None
) -> list[Site | None]:
    """The line of the two that only one of the ranks ever comes to goes first."""
    known = ({c.site for c in ours if c}, {c.site for c in theirs if c})
    alone = [
        c.site
        for c, others in ((a, known[1]), (b, known[0]))
        if c is not None and c.site not in others
    ]
    return [*alone, *(c.site for c in (a, b) if c is not None)]
