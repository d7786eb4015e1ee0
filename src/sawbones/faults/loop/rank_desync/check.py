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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sawbones.schema import Event, Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import nodes
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

NEEDS = ("ranks", "tensors")
EXPLAINS = ("loop.gradient-not-reduced",)
EXPERIMENT = None
TOLERANCE = 1e-5
MATERIAL = (
    0.05  # by how much of its size a buffer differs, or a running mean of the running deviation
)


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        return
    yield from _by_norms(run) or _by_fingerprints(run) or _buffers(run)


def _by_norms(run: Run) -> list[Finding]:
    for other in run.ranks:
        found = first_difference(run, other, "param_l2", TOLERANCE)
        gradient = first_difference(run, other, "grad_l2", 1e-4)
        if found is None or (
            gradient is not None
            and gradient[0] <= found[0]
            and not started_apart(run, other, found[0])
        ):
            continue
        step, tensor, ours, theirs = found
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        text = (
            f"{name} at step {step}: norm {ours:.6g} on rank {run.rank}, {theirs:.6g} on rank "
            f"{other.rank}"
        )
        return [
            _finding(run, other, step, Evidence(text, "tensor_statistics", (step,), theirs, ours))
        ]
    return []


def _by_fingerprints(run: Run) -> list[Finding]:
    row, gradients = apart(run, "parameters"), apart(run, "gradients")
    if row is None or (gradients is not None and gradients["first"] <= row["first"]):
        return []  # gradients that differ make parameters differ
    first = next(t for t in row["tensors"] if t["distance"] > TOLERANCE)
    text = (
        f"fingerprints of ranks {row['with']} and {row['rank']} differ after {row['step']} steps"
        + (f", after {row['same']} they were the same" if row["same"] >= 0 else "")
        + (
            f": {row['num']} tensors, the first {first['name']}, apart by "
            f"{first['distance']:.2g} of its norm"
        )
    )
    other = next((r for r in run.ranks if r.rank == row["rank"]), None)
    evidence = Evidence(
        text, "ranks", (int(row["step"]),), float(first["ours"]), float(first["theirs"])
    )
    return [_finding(run, other, int(row["first"]) - 1, evidence)]


def _finding(run: Run, other: Run | None, step: int, evidence: Evidence) -> Finding:
    seed = next(
        (e.site for e in run.of_kind("seed") if other is not None and _differs(run, other, e.seq)),
        None,
    )
    built = next((m.built for m in run.modules if m.built is not None), None)
    stepped = next((o.site for o in run.optimizers if o.site is not None), None)
    start = step <= 0
    alone = written_alone(run, other) if other is not None else ()
    rates = rates_apart(run, other, step) if other is not None else None
    if rates is not None:
        return _by_rates(run, rates, evidence)
    places = (seed, built, *alone, stepped) if start else (*alone, stepped, seed, built)
    when = "from the start" if start else f"from step {step} on"
    return Finding(
        "loop.rank-desync",
        "proven",
        0.93,
        f"Parameters differ between ranks {when}",
        _distinct(places),
        (evidence,),
        Fix(
            "Start all ranks from one state (one seed, a broadcast, or DDP), and do the "
            "same to the parameters on every rank."
        ),
    )


def _by_rates(run: Run, calls: tuple[Event, Event], evidence: Evidence) -> Finding:
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
    measured = [n.site for n in nodes(run) if ours.step in n.steps] if given else []
    return Finding(
        "loop.rank-desync",
        "proven",
        0.93,
        f"Parameters differ between ranks: from step {ours.step} on their learning rates do",
        _distinct((ours.site, *measured[-1:])),
        (Evidence(text, "schedule", (ours.step,)), evidence),
        Fix(
            "Average the number over the ranks (all_reduce) before the scheduler decides "
            "by it, so that all decide the same."
        ),
    )


def _buffers(run: Run) -> list[Finding]:
    row, wrapper = buffers_apart(run), wrapped(run)
    if row is None or apart(run, "parameters") is not None:
        return []
    shares = {t["name"]: _share(run, t, row["tensors"]) for t in row["tensors"]}
    worst = max(row["tensors"], key=lambda t: shares[t["name"]])
    if shares[worst["name"]] <= MATERIAL:
        return []
    owner = worst["name"].rpartition(".")[0]
    built = next((m.built for m in run.modules if m.path == owner), None)
    text = (
        f"{worst['name']} on ranks {row['with']} and {row['rank']} differs by {shares[worst['name']]:.2g} of its size after "
        f"{row['step']} steps ({row['num']} buffers differ, {row['looks']} looks since step {row['first']}); the parameters agree"
    )
    sure = wrapper is not None
    fix = (
        "Let DDP broadcast buffers (its default), use SyncBatchNorm, or average the buffers "
        "across ranks before they are used."
    )
    return [
        Finding(
            "loop.rank-desync",
            "proven" if sure else "suspected",
            0.9 if sure else 0.4,
            "Buffers drift apart between ranks, and nothing brings them together",
            _distinct((wrapper.site if wrapper is not None else None, built)),
            (
                Evidence(
                    text, "ranks", (int(row["step"]),), float(worst["ours"]), float(worst["theirs"])
                ),
            ),
            Fix(fix),
        )
    ]


def _share(run: Run, tensor: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]]) -> float:
    """A running mean may lie near zero: it is measured by the deviation that it is divided by."""
    owner, _, name = tensor["name"].rpartition(".")
    if name == "num_batches_tracked":
        return 0.0
    if name != "running_mean":
        return float(tensor["distance"])
    variance = next(
        (
            t
            for t in tensors
            if t["name"] == f"{owner}.running_var" or (not owner and t["name"] == "running_var")
        ),
        None,
    )
    size = next((m.settings.get("num_features") for m in run.modules if m.path == owner), None)
    if variance is None or not size:
        return 0.0
    deviation = (min(variance["ours"], variance["theirs"]) * float(size) ** 0.5) ** 0.5
    return float(tensor["distance"] * max(tensor["ours"], tensor["theirs"]) / (deviation + 1e-12))


def _distinct(places: tuple[Site | None, ...]) -> tuple[Site, ...]:
    return tuple(dict.fromkeys(p for p in places if p is not None))[:5]


def _differs(run: Run, other: Run, seq: int) -> bool:
    """A seed that is another one on the other rank."""
    ours = [e for e in run.of_kind("seed") if e.data.get("value") is not None]
    theirs = [e for e in other.of_kind("seed") if e.data.get("value") is not None]
    return any(
        a.seq == seq and a.data.get("value") != b.data.get("value")
        for a, b in zip(ours, theirs, strict=False)
    )
