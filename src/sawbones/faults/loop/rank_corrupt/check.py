"""A rank computes other numbers from the same weights and the same batch

## What it sees
Under `diagnose`, one batch of the first rank goes to all ranks. On a few steps each of them calls a
copy of its model with it, in evaluation mode and from one random seed, and the ranks compare 64-bit
fingerprints of what every layer puts out. Fires when two ranks whose weights, buffers and batch are
the same bit for bit get numbers that differ by more than the rounding of the dtype, and names the
first layer that does. The earliest step is the second.

## Why it matters
The gradient of that rank is wrong, and averaging hands it to all of them. Nothing crashes: weights
stay equal on all ranks, and the model gets worse than it should.

## Looks like
A loss that is higher, noisier or NaN on some machines only; a run that does not repeat elsewhere.

## Example
    torch.backends.cuda.matmul.allow_tf32 = rank == 1  # or a faulty device, or another library
    model = DistributedDataParallel(build())

## Use instead
    torch.backends.cuda.matmul.allow_tf32 = False  # the same settings, versions and devices
    model = DistributedDataParallel(build())

## Confirm it
Run the script on the suspect's machine alone, and on another one, from the same seed: `sawbones
compare` shows the first difference. With two ranks it cannot be said which of them is right.

## False alarms
Other devices and other orders of summation differ by rounding: 1e-4 of the norm in float32, more
in half precision. A model that answers otherwise when it is asked twice, that communicates in its
forward pass, or of which ranks hold parts is not asked. A model that uses the number of its rank on
purpose does differ. Only forward passes are compared, not backward ones.

## References
Silent data corruption at scale (Dixit et al. 2021); cores that don't count (Hochschild et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, exact, finding, tolerance
from sawbones.evidence.limits import stalls as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.ranks import answers_apart, everyone, is_sharded
from sawbones.trace.locate import locate

PREVIEW = True
NEEDS = ("ranks", "tensors")
USES = ("agreement", "sharded")
EXPLAINS = ()
EXPERIMENT = None
TERMS = 64  # sums of this many roundings in half precision


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        raise NothingToJudge("each rank holds a part of every tensor")
    if not any(r.agreement and r.agreement.asked for r in everyone(run)):
        raise NothingToJudge("the ranks were not asked the same: only diagnose does")
    row, rounding = answers_apart(run), _rounding(run)
    first = next(
        (
            t
            for t in (row.tensors if row is not None else ())
            if limits.ANSWERS_APART.passed_by(t.distance - rounding)
        ),
        None,
    )
    if row is None or first is None:
        return
    name = first.name or "the model"
    text = (
        f"the answer of {name} to one batch differs by {first.distance:.2g} of its norm "
        f"({first.ours:.6g} on rank {row.rank}, {first.theirs:.6g} on rank {row.other}) after "
        f"{row.step} steps; weights and batch are the same bit for bit"
    )
    yield finding(
        f"Ranks {row.other} and {row.rank} compute different numbers from the same weights and "
        "batch",
        _where(run, first.name),
        (
            exact(
                text,
                first.distance,
                within=rounding + limits.ANSWERS_APART.value,
                signal="ranks",
                steps=(row.step,),
            ),
            *_environments(run),
        ),
        Fix(
            "Take the machine of one of the two out, then of the other, and test its device; give "
            "all ranks the same versions, precision settings and devices."
        ),
    )


def _rounding(run: Run) -> float:
    """Of the coarsest dtype among the parameters."""
    return max((tolerance(t.dtype, terms=TERMS) for t in run.tensors), default=0)


def _where(run: Run, path: str) -> tuple[Site, ...]:
    built = [m.built for m in run.modules if m.path == path]
    calls = [e.site for e in run.of_kind("forward") if e.phase == "train"][:1]
    return locate(*built[:1], *calls)


def _environments(run: Run) -> Iterator[Evidence]:
    """What the ranks run on, where it is not the same."""
    for other in run.ranks:
        for key, ours in run.environment.items():
            theirs = other.environment.get(key, ours)
            if theirs != ours:
                yield context(
                    f"{key}: {ours} on rank {run.rank}, {theirs} on rank {other.rank}",
                    signal="ranks",
                )
