"""What every rank does before the ranks meet in a step, and how long it then takes.

Only durations of one rank are used: the clocks of ranks do not agree. A step begins where the
optimizer's last one ended. The ranks meet in the first collective of the script, or, under DDP, in
the last backward pass of the step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from sawbones.schema import Batch, Event, Run, Site
from sawbones.stats.ranks import everyone, wrapped
from sawbones.stats.splits import told_apart


@dataclass(frozen=True)
class RankStep:
    """Milliseconds, Sawbones' own work left out."""

    between: float  # from the step before to the call of the model
    forward: float  # from there to where the ranks meet
    meeting: float  # from there to the end of the optimizer's step

    @property
    def alone(self) -> float:
        return self.between + self.forward


@dataclass(frozen=True)
class Lag:
    """The rank that comes last to the meeting most often."""

    rank: int  # its place among everyone(run)
    times: int
    steps: int
    lag_ms: float  # behind the next slower one, median
    wait_ms: float  # by which the meeting takes the others longer, median
    step_ms: float
    between_ms: float  # of the lag: before the model is called


def rank_steps(run: Run) -> dict[int, RankStep]:
    """Of the steps whose events are there, without deep ones and those after them."""
    is_deep = run.steps["deep"] > 0
    deep = {int(step) for step in run.steps["step"][is_deep]}
    under_ddp = wrapped(run) is not None
    found: dict[int, RankStep] = {}
    began: float | None = None
    for step, events in _by_step(_without_own(run)):
        ended = next((at for at, e in reversed(events) if e.kind == "step"), None)
        met = _meeting(events, under_ddp)
        if began is not None and ended is not None and met is not None:
            called = next((at for at, e in events if e.kind == "forward"), began)
            if step not in deep and step - 1 not in deep and step > 2:
                found[step] = RankStep(called - began, met - called, ended - met)
        began = ended
    return found


def _without_own(run: Run) -> Iterator[tuple[float, Event]]:
    """Events of training, with times from which our own work is taken out."""
    ours, passed = dict(run.own_ms or ()), 0.0
    for event in run.events:
        passed += ours.get(event.seq, 0.0)
        if event.phase == "train":
            yield 1e3 * event.time - passed, event


def _by_step(
    timed: Iterator[tuple[float, Event]],
) -> Iterator[tuple[int, list[tuple[float, Event]]]]:
    rows: list[tuple[float, Event]] = []
    for row in timed:
        if rows and row[1].step != rows[0][1].step:
            yield rows[0][1].step, rows
            if row[1].step != rows[0][1].step + 1:
                yield -1, []  # a gap: the next step begins at an unknown time
            rows = []
        rows.append(row)
    if rows:
        yield rows[0][1].step, rows


def _meeting(events: Sequence[tuple[float, Event]], under_ddp: bool) -> float | None:
    met = [at for at, e in events if e.kind == "collective"][:1]
    if under_ddp:
        met += [at for at, e in events if e.kind == "backward"][-1:]
    return min(met, default=None)


def lag(run: Run, least: int) -> Lag | None:
    """None where fewer than `least` steps of all ranks can be laid side by side."""
    ranks = [rank_steps(r) for r in everyone(run)]
    steps = sorted(set.intersection(*(set(r) for r in ranks)))
    if len(ranks) < 2 or len(steps) < least:
        return None
    alone = [[r[step].alone for r in ranks] for step in steps]
    last, times = Counter(row.index(max(row)) for row in alone).most_common(1)[0]
    others = [r for i, r in enumerate(ranks) if i != last]
    behind = [row[last] - max(row[:last] + row[last + 1 :]) for row in alone]
    ours = ranks[last]
    return Lag(
        last,
        times,
        len(steps),
        median(behind),
        median(mean(r[s].meeting for r in others) - ours[s].meeting for s in steps),
        median(ours[s].alone + ours[s].meeting for s in steps),
        median(ours[s].between - mean(r[s].between for r in others) for s in steps),
    )


def work_ratio(run: Run, rank: int) -> float:
    """Values in the batches of one rank, over those of the rank with most of the others."""
    totals = [median([_size(b) for b in told_apart(r)[0]] or [0.0]) for r in everyone(run)]
    most = max(totals[:rank] + totals[rank + 1 :], default=0.0)
    return totals[rank] / most if most else 1.0


def _size(batch: Batch) -> float:
    return float(max((math.prod(t["shape"]) for t in batch.tensors), default=0))


def extra_lines(run: Run, rank: int) -> list[tuple[Site, float]]:
    """Lines that one rank stood at longer than the others, with the seconds, the longest first."""
    spent = [
        {line.site: line.seconds for line in (r.standing.lines if r.standing else ())}
        for r in everyone(run)
    ]
    others = spent[:rank] + spent[rank + 1 :]
    extra = [(s, t - mean(o.get(s, 0.0) for o in others)) for s, t in spent[rank].items()]
    return sorted((row for row in extra if row[1] > 0), key=lambda row: -row[1])
