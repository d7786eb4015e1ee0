"""Graphs of past steps kept alive

## What it sees
A mark in the graph of every step's loss and model output, and at its beginning, which lives as long
as the graph does. Fires when at least 80 % of the graphs that are older than twelve steps are still
alive, at least eight of them; the earliest is step 20.

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
epoch shows as a count that falls back.

## References
The PyTorch FAQ: "Don't accumulate history across your training loop."
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.loss_calls import as_site

NEEDS = ("steps", "graphs")
EXPLAINS = ("loop.out-of-memory",)
EXPERIMENT = None
SHARE = 0.8
MIN_KEPT = 8


def check(run: Run) -> Iterator[Finding]:
    record = run.facts["graphs"]
    series = [(int(step), int(kept), int(made)) for step, kept, made in record["series"]]
    step, kept, made = max(series, key=lambda row: row[1])
    if kept < MIN_KEPT or kept < SHARE * made:
        return
    falls = any(later[1] < 0.5 * kept for later in series if later[0] > step)
    sites = [as_site(site) for site in record.get("holders") or ()]
    sites += [as_site(site) for site, votes in record["sites"] if votes >= 0.3 * made]
    sites += [e.site for e in run.of_kind("backward")[:1]]
    memory = run.steps.get("memory_mb")
    evidence = [
        Evidence(
            f"at step {step}, {kept} of {made} graphs of steps long past are still alive",
            "graphs",
            (step,),
            float(kept),
            0.0,
        )
    ]
    if memory is not None and len(memory) > 20:
        grown = float(memory[-1] - memory[len(memory) // 3])
        evidence.append(
            Evidence(
                f"memory grew by {grown:.1f} MB over the last two thirds of the run",
                "steps",
                (),
                grown,
                0.0,
            )
        )
    yield Finding(
        "loop.memory-leak",
        "likely" if falls else "proven",
        0.8 if falls else 0.93,
        "Graphs of past steps are kept alive: memory grows with every step",
        tuple(dict.fromkeys(s for s in sites if s is not None)),
        tuple(evidence),
        Fix("Keep numbers, not tensors with a graph: loss.item(), or tensor.detach()."),
    )
