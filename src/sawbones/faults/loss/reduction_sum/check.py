"""A loss that is summed where a mean is meant

## What it sees
The weight of each target in the loss, from the gradient of the backward's root: 1 per target is a
sum, 1/N a mean, whoever computed it. Fires when every counted target (at least 4) weighs 1. It is
likely when the step is then out of scale (plain SGD with LR x N of 1 or more), when the script
itself averages the same loss in evaluation, when clipping cuts nearly every gradient that it would
leave alone for a mean, or when it is a loss over classes (cross-entropy, NLL, CTC) under an
adaptive optimizer, without accumulation; else only suspected until the experiment speaks. Earliest
at step 0.

## Why it matters
The gradient grows with the batch size and the sequence length: an LR that fits a mean is N times
too high, the last, smaller batch takes a smaller step, and the loss can't be compared between
settings.

## Looks like
Loss at the start is about N x log C; with SGD the run explodes or oscillates from the first steps;
with clipping every step is clipped.

## Example
    criterion = nn.CrossEntropyLoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

## Use instead
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

## Confirm it
The script runs again with the gradient of the loss divided by the number of targets. Confirmed when
the loss ends clearly lower.

## False alarms
A likelihood that is summed on purpose comes with an LR that fits (LR / N), and dividing again only
slows it down: refuted. Sums over pixels or latent dimensions that are averaged over the batch weigh
1/B, not 1. With Adam and its relatives the scale of the gradient does not matter and a summed ELBO
stays a suspicion that the experiment refutes. Gradients that are divided after the backward, as
accumulation over tokens does, are refuted in the same way.

## References
Sums with SGD appear among the "training problems" of several studies of deep learning bugs; fairseq
divides its summed loss by the number of tokens for this reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, carrying, places

NEEDS = ("loss_calls", "steps")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "loss.unstable-log",
    "model.dead-units",
    "loop.accumulation-unscaled",
    "model.bad-init",
    "data.unnormalized-input",
)
EXPERIMENT = "mean_for_sum"
OUT_OF_SCALE = 1.0  # LR x N: a mean would need an LR of 1 to step as far
FEWEST = 4


def check(run: Run) -> Iterator[Finding]:
    calls = [seen for seen in carrying(run) if seen.is_finite]
    summed = [(seen, n) for seen in calls if (n := _summed_over(seen, run))]
    if not summed or len(summed) < 0.9 * len(calls):
        return
    seen = summed[0][0]
    number = int(np.median([n for _, n in summed]))
    reasons = _reasons(run, seen, number)
    mean = seen.number("mean_of_elements")
    value = seen.call.value if seen.call.value is not None else math.nan
    evidence = [
        Evidence(
            f"each of the {summed[0][1]} targets of step {seen.deep.step} weighs 1, as in a sum; in a mean it would weigh "
            f"{1 / summed[0][1]:.2g}",
            "loss_calls",
            tuple(s.deep.step for s, _ in summed),
            1.0,
            1 / summed[0][1],
        ),
        Evidence(
            f"loss {value:.4g} instead of {mean:.4g} per target",
            "loss_calls",
            (seen.deep.step,),
            value,
            mean,
        ),
    ]
    evidence += [Evidence(text, "steps") for text in reasons.values()]
    yield Finding(
        "loss.reduction-sum",
        "likely" if reasons else "suspected",
        0.9 if "scale" in reasons else 0.8 if reasons else 0.4,
        f"The loss is a sum over {number} targets, so the gradient grows with the batch",
        _where(seen),
        tuple(evidence),
        Fix(
            (
                'Average instead of summing: reduction="mean" (the default), or divide by the '
                "number of targets; else divide the LR."
            ),
            replace=_replacement(_where(seen)),
        ),
        params={"count": number, "keep": bool(set(reasons) - {"scale"})},
    )


def _summed_over(seen: Seen, run: Run) -> int:
    """Number of targets, when the backward's root is their plain sum; else 0."""
    weights = seen.facts.get("weights")
    scale = _scale(seen, run)
    if seen.call.fn == "ctc_loss":
        return _summed_rows(seen, run, scale)
    if weights and weights.get("fit", 0.0) > 0.98:
        low, high = weights["min"] / scale, weights["max"] / scale
        # Ignored targets weigh nothing and pull the minimum to 0.
        low = (
            high
            if weights["used"] < weights["rows"] and weights["min"] < 1e-6 * weights["max"]
            else low
        )
        total = weights["sum"] / scale / max(weights["used"], 1)
        even = max(abs(high - 1), abs(low - 1), abs(total - 1)) < 0.03
        return int(weights["used"]) if even and weights["used"] >= FEWEST else 0
    number = int(seen.facts.get("num_counted") or 0)
    ratio = seen.number("root_over_mean") / scale
    return (
        number
        if number >= FEWEST and math.isfinite(ratio) and abs(ratio / number - 1) < 0.02
        else 0
    )


def _summed_rows(seen: Seen, run: Run, scale: float) -> int:
    """Alignments have no loss per target: the sum over the rows of the batch, when the backward
    starts from that very number.
    """
    value, shape = seen.call.value, seen.call.input.shape
    if seen.facts.get("reduction") != "sum" or not value or len(shape) != 3:
        return 0
    roots = [e.data.get("value") for e in run.of_kind("backward") if e.step == seen.deep.step]
    same = any(isinstance(root, float) and abs(root / scale / value - 1) < 0.01 for root in roots)
    return shape[1] if same and shape[1] >= FEWEST else 0


def _scale(seen: Seen, run: Run) -> float:
    """The loss scale of mixed precision, which is in the backward's root but not in the loss."""
    for event in run.of_kind("scale"):
        if event.step == seen.deep.step and event.data.get("scale"):
            return float(event.data["scale"])
    return 1.0


def _reasons(run: Run, seen: Seen, number: int) -> dict[str, str]:
    found: dict[str, str] = {}
    optimizer = run.optimizers[0] if run.optimizers else None
    lrs = run.steps["lr"][np.isfinite(run.steps["lr"])]
    lr = float(np.max(lrs)) if len(lrs) else 0.0
    norms = [
        (e.data["norm"], e.data["max_norm"])
        for e in run.of_kind("clip")
        if e.data.get("norm") and e.data.get("max_norm")
    ]
    plain = optimizer is not None and {"momentum", "nesterov"} <= set(optimizer.defaults)
    if plain and lr * number >= OUT_OF_SCALE:
        found["scale"] = (
            f"an LR of {lr:.3g} times {number} targets is a step of {lr * number:.3g} for "
            "the mean loss"
        )
    for event in run.of_kind("loss"):
        alike = (
            event.data.get("fn") == seen.call.fn
            and event.phase == "eval"
            and not event.data.get("grad")
        )
        if alike and event.data.get("reduction") == "mean" and seen.facts.get("reduction") == "sum":
            found["evaluation"] = (
                f"the script averages the same {seen.call.fn} in evaluation ({event.site})"
            )
            break
    classes = seen.facts.get("target_is_index") or seen.call.fn == "ctc_loss"
    parts = run.steps.get("microsteps", np.ones(1))
    alone = (
        not plain and len(parts) > 0 and float(np.nanmax(parts)) <= 1
    )  # with plain SGD the LR itself says whether it fits
    if classes and alone and seen.call.fn in ("cross_entropy", "nll_loss", "ctc_loss"):
        found["classes"] = (
            f"a {seen.call.fn} is summed over all {number} and divided by nothing before "
            "the backward"
        )
    if len(norms) >= 5 and seen.facts.get("target_is_index"):
        cut = np.mean([norm > limit for norm, limit in norms])
        would = np.mean([norm / number > limit for norm, limit in norms])
        if cut > 0.9 and would < 0.1:
            found["clipping"] = (
                f"clipping cuts {100 * cut:.0f} % of the gradients; for a mean it would "
                f"cut {100 * would:.0f} %"
            )
    return found


def _where(seen: Seen) -> tuple[Site, ...]:
    """Where the sum is taken: in the criterion's settings, else in the last operator that sums to a
    single number.
    """
    whole = [o for o in seen.deep.ops if o.name == "sum" and o.outputs and not o.outputs[0].shape]
    sums = [o.site for o in whole if o.outputs[0].requires_grad]
    in_call = seen.facts.get("reduction") == "sum" and not seen.facts.get("by_hand")
    return (
        places(seen.built, seen.call.site)
        if in_call
        else places(*reversed(sums[-2:]), seen.call.site)
    )


def _replacement(where: tuple[Site, ...]) -> tuple[str, str] | None:
    code = where[0].code if where else ""
    for old, new in (
        ('reduction="sum"', 'reduction="mean"'),
        ("reduction='sum'", "reduction='mean'"),
        (".sum()", ".mean()"),
    ):
        if code.count(old) == 1:
            return old, new
    return None
