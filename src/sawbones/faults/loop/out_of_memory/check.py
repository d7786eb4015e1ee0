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

from sawbones.evidence import context, finding, refused
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Explanation, Finding, Fix, Run, Size
from sawbones.stats.crash_memory import (
    asked_bytes,
    held,
    in_words,
    operands,
    result_shape,
    ways_out,
)
from sawbones.stats.crash_shapes import written
from sawbones.stats.failures import failure, ran_out_of_memory, user_frames
from sawbones.trace.locate import locate

NEEDS = ("crash",)
USES = ("loaders",)
EXPLAINS = ()
EXPERIMENT = None
MIN_BATCHES = 4  # of fewer there is no usual one


def check(run: Run) -> Iterator[Finding]:
    message = (run.ending.message or "").strip()
    kind = run.ending.exception or ""
    if not ran_out_of_memory(run):
        return
    first = message.splitlines()[0][:200] if message else ""
    evidence = [refused(f"{kind}: {first}", steps=(run.num_steps,))]
    failed = failure(run)
    if failed is not None:
        shapes = ", ".join(map(str, failed.shapes))
        evidence.append(context(f"operator {failed.op} on shapes {shapes}", signal="crash"))
    sizes = sorted(max((prod(t["shape"]) for t in b.tensors), default=0) for b in run.batches)
    in_hand = (run.ending.batch or {}).get("tensors", ())
    now = max((prod(t.get("shape") or [0]) for t in in_hand), default=0)
    usual = sizes[len(sizes) // 2] if len(sizes) >= MIN_BATCHES else 0
    made = []
    if usual and limits.LARGE_BATCH.passed_by(now / usual):
        # A rare batch is made smaller where it is put together.
        made = [loader.collate_site for loader in run.loaders]
        text = f"the batch in hand has {now} elements, the usual one {usual}"
        evidence.append(context(text, signal="batches", value=now, expected=usual))
    explanation, advice = _explanation(run, message)
    yield finding(
        "The run asked for more memory than there is",
        locate(failed, *made, *user_frames(run), run.ending)[:4],
        evidence,
        Fix(
            "Make this operator smaller: cap the length of a batch, a smaller batch with "
            f"accumulation, checkpointing, or chunks.{advice}"
        ),
        explanation=explanation,
    )


def _explanation(run: Run, message: str) -> tuple[Explanation | None, str]:
    """What the memory was for, and what each way out would take. Nothing where the allocator does
    not say how much it was.
    """
    asked = asked_bytes(message)
    if not asked:
        return None, ""
    given = operands(run)
    shape = result_shape(run, given, asked)
    dtype = given[0][1].dtype if given else ""
    ways = list(ways_out(asked, shape or (given[0][1].shape if given else ()), dtype))
    sizes = [Size(name, written(bound.shape), bound.dtype) for name, bound in given[:2]]
    sizes += [Size(way.text, in_words(way.num_bytes)) for way in ways]
    sizes += [Size(f"held: {name}", in_words(size)) for name, size in held(run)]
    names = " and ".join(f"{name} ({written(bound.shape)})" for name, bound in given[:2])
    because = f"it is for the result of {names}" if names else ""
    if shape:
        because += f", {written(shape)}"
    told = "; ".join(f"{way.text}: {in_words(way.num_bytes)}" for way in ways)
    return (
        Explanation("memory that is there", in_words(asked), because, tuple(sizes[:8])),
        f" In place of {in_words(asked)}: {told}." if told else "",
    )
