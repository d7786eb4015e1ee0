"""Parameters that differ between ranks that must agree

## What it sees
The norm of every parameter on every rank, on sampled steps. Fires when a norm differs by more than 1e-5 of its size, and names the
first step and tensor.

## Why it matters
Averaged gradients of different models are the gradient of none of them, and each rank would save another model.

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
Sharded models hold different parts, and drift that follows from gradients that were not averaged is a consequence.

## References
The PyTorch notes on DDP: all replicas start from the same state, which the wrapper broadcasts once.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.ranks import everyone, first_difference, is_sharded, started_apart, written_alone

NEEDS = ("ranks", "tensor_statistics", "tensors")
EXPLAINS = ("loop.gradient-not-reduced",)
EXPERIMENT = None
TOLERANCE = 1e-5


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        return
    for other in run.ranks:
        found = first_difference(run, other, "param_l2", TOLERANCE)
        gradient = first_difference(run, other, "grad_l2", 1e-4)
        if found is None or (gradient is not None and gradient[0] <= found[0] and not started_apart(run, other, found[0])):
            continue
        step, tensor, ours, theirs = found
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        seed = next((e.site for e in run.of_kind("seed") if _differs(run, other, e.seq)), None)
        built = next((m.built for m in run.modules if m.built is not None), None)
        stepped = next((o.site for o in run.optimizers if o.site is not None), None)
        start = step == 0
        alone = written_alone(run, other)
        places = (seed, built, *alone, stepped) if start else (*alone, stepped, seed, built)
        when = "from the start" if start else f"from step {step} on"
        yield Finding(
            "loop.rank-desync", "proven", 0.93, f"Parameters differ between ranks {when}",
            tuple(dict.fromkeys(p for p in places if p is not None))[:5],
            (
                Evidence(
                    f"{name} at step {step}: norm {ours:.6g} on rank 0, {theirs:.6g} on rank {other.rank}", "tensor_statistics",
                    (step,), theirs, ours,
                ),
            ),
            Fix("Start all ranks from one state (one seed, a broadcast, or DDP), and do the same to the parameters on every rank."),
        )  # fmt: skip
        return


def _differs(run: Run, other: Run, seq: int) -> bool:
    """A seed that is another one on the other rank."""
    ours = [e for e in run.of_kind("seed") if e.data.get("value") is not None]
    theirs = [e for e in other.of_kind("seed") if e.data.get("value") is not None]
    return any(a.seq == seq and a.data.get("value") != b.data.get("value") for a, b in zip(ours, theirs, strict=False))
