"""Graphs of past steps kept alive

## What it sees
A mark in the graph of every step's loss and model output, and at its beginning, which lives as long
as the graph does. Outputs are counted by the line that calls the model, so that a score kept beside
the training loss is seen too. Fires when graphs are still alive of at least 80 % of the steps that
are older than twelve, at least eight of them; the earliest is step 20.

## Why it matters
Memory grows with every step until the process is killed, hours into a run, and every step gets
slower.

## Looks like
Memory that rises like a line; out of memory in a later epoch, never in the first.

## Example
    total_loss = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total_loss += loss

## Use instead
    total_loss = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total_loss += loss.item()

## Confirm it
No experiment: the graphs were counted while the run went on.

## False alarms
The current step's graph, an accumulation window and an unrolled sequence are younger than twelve
steps. Losses kept as numbers or detached carry no graph. A history that is emptied at the end of an
epoch shows as a count that falls back, and all graphs that one evaluation keeps count as one.

## References
The PyTorch FAQ: "Don't accumulate history across your training loop."
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run

NEEDS = ("steps", "graphs")
EXPLAINS = ("loop.out-of-memory",)
EXPERIMENT = None
MIN_KEPT = 8  # graphs: fewer are held by the loop's own variables


def check(run: Run) -> Iterator[Finding]:
    graphs = run.graphs
    if graphs is None or not graphs.series:
        raise NothingToJudge("no graph of a past step was counted")
    step, kept, made = max(graphs.series, key=lambda row: row[1])
    if kept < MIN_KEPT or not limits.GRAPHS_KEPT.reached_by(kept / made):
        return
    later = [row[1] for row in graphs.series if row[0] > step]
    falls = any(limits.GRAPHS_RELEASED.undercut_by(alive / kept) for alive in later)
    sites = [
        *graphs.holders,
        *(site for site, votes in graphs.sites if limits.GRAPH_SITES.reached_by(votes / made)),
        *(e.site for e in run.of_kind("backward")[:1]),
    ]
    evidence = [
        counted(
            f"at step {step}, {kept} of {made} graphs of steps long past are still alive",
            kept,
            made,
            limits.GRAPHS_KEPT,
            signal="graphs",
            steps=(step,),
        )
    ]
    memory = run.steps.get("memory_mb")
    if memory is not None and len(memory) > 20:
        grown = float(memory[-1] - memory[len(memory) // 3])
        text = f"memory grew by {grown:.1f} MB over the last two thirds of the run"
        evidence.append(context(text, signal="steps", value=grown, expected=0))
    yield finding(
        "Graphs of past steps are kept alive: memory grows with every step",
        tuple(dict.fromkeys(s for s in sites if s is not None)),
        evidence,
        Fix("Keep numbers, not tensors with a graph: loss.item(), or tensor.detach()."),
        at_most="likely" if falls else "proven",
    )
