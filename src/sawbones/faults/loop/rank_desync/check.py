"""Parameters or buffers that differ between ranks that must agree

## What it sees
Every parameter and buffer on every rank: 64-bit fingerprints that the ranks exchange while they
train, and the norms that each recorded. Fires when a norm differs by more than 1e-5 of its size, or
the tensors themselves by more than 1e-4, and names the first step and tensor, and where a scheduler
gave the ranks other learning rates before, its call. Buffers count when nothing brings them
together: DDP with `broadcast_buffers=False`, and no collective of the script that holds them.

## Why it matters
Averaged gradients of different models are the gradient of none of them, and each rank would save
another model. Running statistics that drift apart are those of one rank's share of the data alone,
and every rank evaluates with its own.

## Looks like
Slow or stalled training on several ranks, validation that differs from rank to rank.

## Example
    torch.manual_seed(rank)
    model = build()
    for p in model.parameters():
        dist.all_reduce(p.grad)

## Use instead
    torch.manual_seed(0)
    model = DistributedDataParallel(build())

## Confirm it
No experiment: the parameters were measured on every rank at the same step.

## False alarms
Sharded models hold different parts, and drift that follows from gradients that were not averaged is
a consequence. DDP broadcasts the buffers of rank 0 before every forward pass by default: between
two of them those of BatchNorm differ, as they must. Running statistics of large batches of one
distribution stay close by themselves. Ranks that round differently differ in single bits.

## References
The PyTorch notes on DDP: all replicas start from the same state, which the wrapper broadcasts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Evidence, Finding, Fix, Run
from sawbones.schema.ranks import TensorApart
from sawbones.stats.ranks import (
    apart,
    buffers_apart,
    everyone,
    first_difference,
    is_sharded,
    rates_apart,
    started_apart,
    wrapped,
    written_alone,
)
from sawbones.trace.locate import locate

NEEDS = ("ranks", "tensors")
USES = ("agreement", "sharded", "writes", "evaluation")
EXPLAINS = ("loop.gradient-not-reduced",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        raise NothingToJudge("each rank holds a part of every tensor, so they must differ")
    yield from _by_norms(run) or _by_fingerprints(run) or _buffers(run)


def _by_norms(run: Run) -> list[Finding]:
    for other in run.ranks:
        found = first_difference(run, other, "param_l2", limits.RANK_WEIGHTS.value)
        if found is None:
            continue
        step, tensor, ours, theirs = found
        gradient = first_difference(run, other, "grad_l2", limits.RANK_GRADIENTS.value)
        from_gradients = gradient is not None and gradient[0] <= step
        if from_gradients and not started_apart(run, other, step):
            continue
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        reading = exact(
            f"{name} at step {step}: norm {ours:.6g} on rank {run.rank}, {theirs:.6g} on rank "
            f"{other.rank}",
            theirs,
            expected=ours,
            within=limits.RANK_WEIGHTS.times(abs(ours) + abs(theirs)),
            signal="tensor_statistics",
            steps=(step,),
        )
        return [_parameters(run, other, step, reading)]
    return []


def _by_fingerprints(run: Run) -> list[Finding]:
    row, gradients = apart(run, "parameters"), apart(run, "gradients")
    if row is None or (gradients is not None and row.first - gradients.first >= 0):
        return []  # gradients that differ make parameters differ
    first = next(t for t in row.tensors if limits.RANK_WEIGHTS.passed_by(t.distance))
    text = (
        f"fingerprints of ranks {row.other} and {row.rank} differ after {row.step} steps"
        + (f", after {row.same} they were the same" if row.same >= 0 else "")
        + (
            f": {row.num} tensors, the first {first.name}, apart by "
            f"{first.distance:.2g} of its norm"
        )
    )
    other = next((r for r in run.ranks if r.rank == row.rank), None)
    reading = exact(text, row.num, signal="ranks", steps=(row.step,))
    return [_parameters(run, other, row.first - 1, reading)]


def _parameters(run: Run, other: Run | None, step: int, reading: Evidence) -> Finding:
    seed = next(
        (e.site for e in run.of_kind("seed") if other is not None and _differs(run, other, e.seq)),
        None,
    )
    built = next((m.built for m in run.modules if m.built is not None), None)
    stepped = next((o.site for o in run.optimizers if o.site is not None), None)
    alone = written_alone(run, other) if other is not None else ()
    rates = rates_apart(run, other, step) if other is not None else None
    if rates is not None:
        return _by_rates(run, rates, reading)
    start = step <= 0
    where = (seed, built, *alone, stepped) if start else (*alone, stepped, seed, built)
    when = "from the start" if start else f"from step {step} on"
    return finding(
        f"Parameters differ between ranks {when}",
        locate(*where)[:5],
        (reading,),
        Fix(
            "Start all ranks from one state (one seed, a broadcast, or DDP), and do the "
            "same to the parameters on every rank."
        ),
    )


def _by_rates(run: Run, calls: tuple[Event, Event], reading: Evidence) -> Finding:
    """The ranks agree until a scheduler, told something else on each of them, gives them other
    learning rates.
    """
    ours, theirs = calls
    told = [c.data.get("metric") for c in calls]
    given = f", given {told[0]:.6g} and {told[1]:.6g}" if None not in told else ""
    text = (
        f"{ours.data['cls']} leaves learning rates {ours.data['lr_after']} and "
        f"{theirs.data['lr_after']} at step {ours.step}{given}"
    )
    measured = [n.site for n in run.evaluation.nodes if ours.step in n.steps] if given else []
    rates = [c.data["lr_after"][0] for c in calls]
    return finding(
        f"Parameters differ between ranks: from step {ours.step} on their learning rates do",
        locate(ours, *measured[-1:])[:5],
        (exact(text, rates[1], expected=rates[0], signal="schedule", steps=(ours.step,)), reading),
        Fix(
            "Average the number over the ranks (all_reduce) before the scheduler decides "
            "by it, so that all decide the same."
        ),
    )


def _buffers(run: Run) -> list[Finding]:
    row, wrapper = buffers_apart(run), wrapped(run)
    if row is None or apart(run, "parameters") is not None:
        return []
    shares = {t.name: _share(run, t, row.tensors) for t in row.tensors}
    name = max(shares, key=lambda key: shares[key])
    if not limits.BUFFERS_APART.passed_by(shares[name]):
        return []
    built = next((m.built for m in run.modules if m.path == name.rpartition(".")[0]), None)
    text = (
        f"{name} on ranks {row.other} and {row.rank} differs by {shares[name]:.2g} "
        "of its size after "
        f"{row.step} steps ({row.num} buffers differ, {row.looks} looks since "
        f"step {row.first}); the parameters agree"
    )
    return [
        finding(
            "Buffers drift apart between ranks, and nothing brings them together",
            locate(wrapper, built),
            (
                compared(
                    text,
                    shares[name],
                    limits.BUFFERS_APART,
                    expected=0,
                    signal="ranks",
                    steps=(row.step,),
                ),
            ),
            Fix(
                "Let DDP broadcast buffers (its default), use SyncBatchNorm, or average the "
                "buffers across ranks before they are used."
            ),
            at_most="suspected" if wrapper is None else "likely",
        )
    ]


def _share(run: Run, tensor: TensorApart, tensors: Sequence[TensorApart]) -> float:
    """A running mean may lie near zero: it is measured by the deviation that it is divided by."""
    owner, _, name = tensor.name.rpartition(".")
    if name == "num_batches_tracked":
        return 0
    if name != "running_mean":
        return tensor.distance
    beside = f"{owner}.running_var" if owner else "running_var"
    variance = next((t for t in tensors if t.name == beside), None)
    size = next((m.settings.get("num_features") for m in run.modules if m.path == owner), None)
    if variance is None or not size:
        return 0
    deviation = sqrt(min(variance.ours, variance.theirs) * sqrt(size))
    return tensor.distance * max(tensor.ours, tensor.theirs) / (deviation + TINY)


def _differs(run: Run, other: Run, seq: int) -> bool:
    """A seed that is another one on the other rank."""
    ours = [e for e in run.of_kind("seed") if e.data.get("value") is not None]
    theirs = [e for e in other.of_kind("seed") if e.data.get("value") is not None]
    return any(
        a.seq == seq and a.data.get("value") != b.data.get("value")
        for a, b in zip(ours, theirs, strict=False)
    )
