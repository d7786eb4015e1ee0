"""A loss, or one term of it, that is summed where a mean is meant

## What it sees
The weight of each target in the loss, from the gradient of the backward's root: 1 per target is a
sum, 1/N a mean, whoever computed it. Fires when every counted target (at least 4) weighs 1. It is
likely when the step is then out of scale (plain SGD with LR x N of 1 or more), when the script
itself averages the same loss in evaluation, when clipping cuts nearly every gradient that it would
leave alone for a mean, or when it is a loss over classes (cross-entropy, NLL, CTC) under an
adaptive optimizer, without accumulation; else only suspected until the experiment speaks. Earliest
at step 0. Also one term of a loss that is summed beside one that is averaged: likely where a
reconstruction is given up (after 200 steps it is no better than the mean of all rows) for a term
whose numbers weigh at least 10 times as much each, as a KL divergence that is summed beside the mean
of all pixels.

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
accumulation over tokens does, are refuted in the same way. Terms of any weight are silent where the
reconstruction depends on the row.

## References
Sums with SGD appear among the "training problems" of several studies of deep learning bugs; fairseq
divides its summed loss by the number of tokens for this reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import loss as limits
from sawbones.evidence.reconstructing import given_up
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, carrying
from sawbones.stats.reconstruction import other_term
from sawbones.trace.locate import locate

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
    "evaluation.collapsed-prediction",
)
EXPERIMENT = "mean_for_sum"
MIN_TARGETS = 4  # a sum over fewer is hardly larger than a mean
MIN_CLIPS = 5  # clipped gradients: fewer say nothing of a habit


def check(run: Run) -> Iterator[Finding]:
    calls = [seen for seen in carrying(run) if seen.is_finite]
    if not calls:
        raise NothingToJudge("no loss with a finite value carried a deep step")
    summed = [(seen, n) for seen in calls if (n := _summed_over(seen, run))]
    if not summed or not limits.SUMMED_STEPS.reached_by(len(summed) / len(calls)):
        yield from _outweighed(run)
        return
    seen, targets = summed[0]
    number = int(np.median([n for _, n in summed]))
    reasons = _reasons(run, seen, number)
    mean = seen.number("mean_of_elements")
    value = math.nan if seen.call.value is None else seen.call.value
    yield finding(
        f"The loss is a sum over {number} targets, so the gradient grows with the batch",
        _where(seen),
        (
            counted(
                f"each of the {targets} targets of step {seen.deep.step} weighs 1, as in a sum; in "
                f"a mean it would weigh {1 / targets:.2g}",
                len(summed),
                len(calls),
                limits.SUMMED_STEPS,
                signal="loss_calls",
                steps=[s.deep.step for s, _ in summed],
            ),
            context(
                f"loss {value:.4g} instead of {mean:.4g} per target",
                signal="loss_calls",
                steps=(seen.deep.step,),
                value=value,
                expected=mean,
            ),
            *reasons.values(),
        ),
        Fix(
            'Average instead of summing: reduction="mean" (the default), or divide by the '
            "number of targets; else divide the LR."
        ),
        at_most="likely" if reasons else "suspected",
        params={"count": number, "keep": bool(set(reasons) - {"scale"})},
    )


def _outweighed(run: Run) -> Iterator[Finding]:
    for term, end in given_up(run):
        deep, call = term.last
        other = other_term(deep, call)
        if other is None or not limits.FULLY_MET.kept_by(other.share):
            continue
        if not limits.OUTWEIGHED.reached_by(other.times):
            continue
        yield finding(
            "The reconstruction is outweighed by the term beside it, and given up",
            locate(call, other.op),
            (
                compared(
                    f"each number of the other term weighs {other.times:.3g} times as much as each "
                    "number that is given back",
                    other.times,
                    limits.OUTWEIGHED,
                    expected=1,
                    signal="loss_calls",
                    steps=(deep.step,),
                ),
                context(
                    f"the reconstruction ends at {end:.4g}, the mean of all rows scores "
                    f"{term.same_for_all:.4g}",
                    signal="losses",
                    value=end,
                    expected=term.same_for_all,
                ),
            ),
            Fix(
                "Reduce both terms alike: sum the reconstruction over the numbers of a row as the "
                "other term is, and average both over the batch; or weigh the other term less."
            ),
            at_most="likely",
            trial="",  # that of a sum over targets changes nothing between two terms
        )
        return


def _summed_over(seen: Seen, run: Run) -> int:
    """Number of targets, when the backward's root is their plain sum; else 0."""
    weights = seen.facts.weights
    scale = _scale(seen, run)
    if seen.call.fn == "ctc_loss":
        number, off = _summed_rows(seen, run, scale), False
    elif weights is not None and limits.WEIGHTS_FIT.passed_by(weights.fit):
        number, low = weights.used, weights.min
        if number != weights.rows and limits.IGNORED_WEIGHT.undercut_by(low / (weights.max or 1)):
            low = weights.max  # ignored targets weigh nothing and pull the minimum to 0
        measured = (low, weights.max, weights.sum / max(number, 1))
        off = not all(limits.SUM_WEIGHT_OFF.undercut_by(abs(w / scale - 1)) for w in measured)
    else:
        number = int(seen.facts.num_counted or 0)
        ratio = seen.number("root_over_mean") / scale / max(number, 1)
        off = not limits.SUM_RATIO_OFF.undercut_by(abs(ratio - 1))
    return 0 if off or number < MIN_TARGETS else int(number)


def _summed_rows(seen: Seen, run: Run, scale: float) -> int:
    """Alignments have no loss per target: the sum over the rows of the batch, when the backward
    starts from that very number.
    """
    value, shape = seen.call.value, seen.call.input.shape
    if seen.facts.reduction != "sum" or not value or len(shape) != 3:
        return 0
    roots = [e.data.get("value") for e in run.of_kind("backward") if e.step == seen.deep.step]
    same = any(
        limits.SUM_ROOT_OFF.undercut_by(abs(root / scale / value - 1))
        for root in roots
        if isinstance(root, float)
    )
    return shape[1] if same else 0


def _scale(seen: Seen, run: Run) -> float:
    """The loss scale of mixed precision, which is in the backward's root but not in the loss."""
    for event in run.of_kind("scale"):
        if event.step == seen.deep.step and event.data.get("scale"):
            return float(event.data["scale"])
    return 1


def _reasons(run: Run, seen: Seen, number: int) -> dict[str, Evidence]:
    """What says that a mean was meant."""
    plain = bool(run.optimizers) and {"momentum", "nesterov"}.issubset(run.optimizers[0].defaults)
    found = {
        "scale": _out_of_scale(run, number) if plain else None,
        "evaluation": _averaged_in_evaluation(run, seen),
        # With plain SGD the LR itself says whether it fits.
        "classes": None if plain else _over_classes(run, seen, number),
        "clipping": _clipped(run, number) if seen.facts.target_is_index else None,
    }
    return {name: reading for name, reading in found.items() if reading is not None}


def _out_of_scale(run: Run, number: int) -> Evidence | None:
    lrs = run.steps["lr"][np.isfinite(run.steps["lr"])]
    lr = float(np.max(lrs)) if len(lrs) else 0
    if not limits.SUMMED_STEP_SIZE.reached_by(lr * number):
        return None
    return compared(
        f"an LR of {lr:.3g} times {number} targets is a step of {lr * number:.3g} for the mean "
        "loss",
        lr * number,
        limits.SUMMED_STEP_SIZE,
        signal="steps",
    )


def _averaged_in_evaluation(run: Run, seen: Seen) -> Evidence | None:
    if seen.facts.reduction != "sum":
        return None
    for event in run.of_kind("loss"):
        mine = event.data.get("fn") == seen.call.fn and event.data.get("reduction") == "mean"
        if mine and event.phase == "eval" and not event.data.get("grad"):
            text = f"the script averages the same {seen.call.fn} in evaluation ({event.site})"
            return context(text, signal="steps")
    return None


def _over_classes(run: Run, seen: Seen, number: int) -> Evidence | None:
    parts = run.steps.get("microsteps", np.ones(1))
    alone = len(parts) > 0 and float(np.nanmax(parts)) <= 1
    indices = seen.facts.target_is_index and seen.call.fn in ("cross_entropy", "nll_loss")
    if not alone or not (indices or seen.call.fn == "ctc_loss"):
        return None
    text = (
        f"a {seen.call.fn} is summed over all {number} and divided by nothing before the backward"
    )
    return context(text, signal="steps")


def _clipped(run: Run, number: int) -> Evidence | None:
    clips = [e.data for e in run.of_kind("clip") if e.data.get("norm") and e.data.get("max_norm")]
    over = np.array([clip["norm"] / clip["max_norm"] for clip in clips])
    if len(over) < MIN_CLIPS:
        return None
    cut, would = float(np.mean(over > 1)), float(np.mean(over / number > 1))
    if not limits.SUM_CLIPPED.passed_by(cut) or not limits.MEAN_CLIPPED.undercut_by(would):
        return None
    return counted(
        f"clipping cuts {100 * cut:.0f} % of the gradients; for a mean it would cut "
        f"{100 * would:.0f} %",
        int(np.sum(over > 1)),
        len(over),
        limits.SUM_CLIPPED,
        signal="steps",
    )


def _where(seen: Seen) -> tuple[Site, ...]:
    """Where the sum is taken: in the criterion's settings, else in the last operator that sums to a
    single number.
    """
    if seen.facts.reduction == "sum" and not seen.facts.by_hand:
        return locate(seen.built, seen.call)
    whole = [o for o in seen.deep.ops if o.name == "sum" and o.outputs and not o.outputs[0].shape]
    sums = [o.site for o in whole if o.outputs[0].requires_grad]
    return locate(*reversed(sums[-2:]), seen.call)
