"""Memory that one batch or one operator asks for and does not get

## What it sees
The exception that ended the run, the operator and the line it came from, and the shapes of the
batch in hand against those before.

## Why it matters
The run is lost at the first rare batch, often hours in.

## Looks like
OutOfMemoryError, or DefaultCPUAllocator "can't allocate memory", at a step that differs from run to
run.

## Example
    distances = (points[:, None] - points[None]).norm(dim=-1)

## Use instead
    distances = torch.cdist(points, points)

## Confirm it
No experiment: the allocator said so.

## False alarms
None: only an allocator's own refusal counts. Memory that grew from step to step is a leak, which
explains this one.

## References
The PyTorch FAQ: "My model reports 'cuda runtime error(2): out of memory'".
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.failures import failure, ran_out_of_memory, user_frames
from sawbones.stats.loss_calls import as_site

NEEDS = ("crash",)
EXPLAINS = ()
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    message = (run.ending.message or "").strip()
    if not ran_out_of_memory(run):
        return
    failed = failure(run)
    evidence = [
        Evidence(
            f"{run.ending.exception}: {message.splitlines()[0][:200] if message else ''}",
            "crash",
            (run.num_steps,),
        )
    ]
    if failed is not None:
        evidence.append(
            Evidence(
                f"operator {failed.op} on shapes {', '.join(map(str, failed.shapes))}", "crash"
            )
        )
    sizes = [max((prod(t["shape"]) for t in b.tensors), default=0) for b in run.batches]
    now = max(
        (prod(t.get("shape") or [0]) for t in (run.ending.batch or {}).get("tensors", ())),
        default=0,
    )
    rare = len(sizes) > 3 and now > 1.5 * sorted(sizes)[len(sizes) // 2]
    loaders = run.facts.get("loaders") or ()
    made = [
        as_site(row["collate_site"]) for row in loaders if row.get("collate_site")
    ]  # a rare batch is made smaller there
    if rare:
        usual = sorted(sizes)[len(sizes) // 2]
        evidence.append(
            Evidence(
                f"the batch in hand has {now} elements, the usual one {usual}",
                "batches",
                (),
                float(now),
                float(usual),
            )
        )
    places = [
        failed.site if failed else None,
        *(made if rare else ()),
        *user_frames(run),
        run.ending.site,
    ]
    yield Finding(
        "loop.out-of-memory",
        "proven",
        0.95,
        "The run asked for more memory than there is",
        tuple(dict.fromkeys(p for p in places if p is not None))[:4],
        tuple(evidence),
        Fix(
            "Make this operator smaller: cap the length of a batch, a smaller batch with "
            "accumulation, checkpointing, or chunks."
        ),
    )
