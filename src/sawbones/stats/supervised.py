"""The loss of a supervised task as the run took it, and what a constant answer would score.

Known only where a deep step recognised the loss, the targets come from the data and everything in
the loss weighs the same. A hand-made objective, a bootstrapped target (reinforcement learning), a
drawn one (diffusion, GAN) or a sum of several losses has no constant answer to be compared with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.schema import LossCall, Run
from sawbones.stats.levels import Level, apart, level, part
from sawbones.stats.protocol import share_the_run
from sawbones.stats.series import finite
from sawbones.trace.operators import PASSING

Floats = npt.NDArray[np.float64]

CLASSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy"}
VALUES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
# Targets that were handed on or put together, not computed.
FROM_DATA = PASSING | {
    "tensor",
    "from_numpy",
    "stack",
    "cat",
    "empty",
    "where",
    "masked_fill",
    "clamp",
}
MOST_COUNTED = 64  # classes that a deep step counts
STANDARD_ERRORS = 2.0  # to the end of a 95 % interval
SAME_SCALE = 0.02  # of the scale, between deep steps
OWN_GRADIENT = 0.99  # fit of the backward's gradient to that of the loss named
SAME_WEIGHT = 1.02  # heaviest target over the average
MASKED = 0.1  # share of the targets that has no weight and is not ignored by the loss either


@dataclass(frozen=True)
class Supervised:
    fn: str
    losses: Floats  # of one target, at every step; climbing where the script maximises it
    constant: float  # what the best constant answer scores, or a bound above it
    constant_error: float
    constant_at_most: float  # the upper end of its interval; for classes, no more than a guess
    sign: int  # -1: the backward starts from the negative of this loss


class NotSupervised(ValueError):
    """Why the constant answer of a run is not known."""


def supervised(run: Run) -> Supervised:
    if share_the_run(run):
        raise NotSupervised("several optimizers share the run: none of them has the loss to itself")
    calls = [_main(deep.losses) for deep in run.deep]
    known = [
        (deep.step, call)
        for deep, call in zip(run.deep, calls, strict=True)
        if call is not None and call.value is not None and math.isfinite(call.value)
    ]
    if not known:
        raise NotSupervised("no loss of targets was recognised on a deep step")
    _refuse_another_loop(run, {step for step, _ in known})
    of = [call for _, call in known]
    _refuse_unusual(of)
    scales = [_scale(run, step, call) for step, call in known]
    middle = float(np.median(scales))
    if not math.isfinite(middle) or middle == 0.0:
        raise NotSupervised("how the loss enters the backward pass is not known")
    if max(abs(scale - middle) for scale in scales) > SAME_SCALE * abs(middle):
        raise NotSupervised("the loss is one of several terms, or is weighed anew at each step")
    constant, error, bound = _constant(of)
    losses = np.asarray(run.losses, np.float64) / middle
    most = min(constant + STANDARD_ERRORS * error, bound)
    return Supervised(of[0].fn, losses, constant, error, most, -1 if middle < 0 else 1)


def is_computed(call: LossCall) -> bool:
    """The targets were not handed on from the data."""
    facts = call.facts
    return facts.target_requires_grad or (facts.target_made_by or "to") not in FROM_DATA


def makes_its_targets(run: Run) -> bool:
    """Most recognised losses have computed targets: what made them is not known of each."""
    calls = [call for deep in run.deep if (call := _main(deep.losses)) is not None]
    return 2 * sum(map(is_computed, calls)) > len(calls)


def _main(losses: Sequence[LossCall]) -> LossCall | None:
    return next((call for call in losses if call.facts.main), None)


def _refuse_another_loop(run: Run, looked_into: set[int]) -> None:
    """A script may train in stages, each with a loss of its own."""
    known = {e.site for e in run.of_kind("backward") if e.step in looked_into}
    late = {e.site for e in run.of_kind("backward") if e.step >= 0.75 * run.num_steps}
    steps, stepping = run.steps["step"], run.steps["optimizer"]
    held = {float(o) for s, o in zip(steps, stepping, strict=True) if int(s) in looked_into}
    if not late <= known or (len(stepping) and float(stepping[-1]) not in held):
        raise NotSupervised("the run trains in stages, and the last one was not looked into")


def _refuse_unusual(calls: Sequence[LossCall]) -> None:
    names = {call.fn for call in calls}
    if len(names) > 1 or not names <= CLASSES | VALUES:
        raise NotSupervised(f"no constant answer is known for {', '.join(sorted(names))}")
    for call in calls:
        facts = call.facts
        if is_computed(call):
            raise NotSupervised("the targets are computed, they do not come from the data")
        if facts.smoothing or facts.has_weight or facts.broadcast:
            raise NotSupervised("the loss is weighted or smoothed")
    _refuse_unequal_weights(calls)


def _refuse_unequal_weights(calls: Sequence[LossCall]) -> None:
    """At first: later on, targets that are learned have no gradient to weigh."""
    facts = calls[0].facts
    weights = facts.weights
    if weights is None:
        return
    average = abs(weights.sum) / max(weights.used, 1)
    heaviest = max(abs(weights.min), abs(weights.max))
    if (weights.fit or 0.0) < OWN_GRADIENT or heaviest > SAME_WEIGHT * average:
        raise NotSupervised("targets weigh differently in the loss")
    left_out = 1.0 - weights.used / max(weights.rows, 1)
    if left_out - (facts.target_ignored_share or 0.0) > MASKED:
        raise NotSupervised("a part of the targets is masked out by hand")


def _scale(run: Run, step: int, call: LossCall) -> float:
    """The recorded loss over the mean of its targets. A scaler's factor is recorded beside it."""
    ratio = call.facts.root_over_mean
    if not isinstance(ratio, (int, float)):
        return math.nan
    rows = np.flatnonzero(run.steps["step"] == step)
    factor = float(run.steps["scale"][rows[0]]) if len(rows) else math.nan
    return float(ratio) / factor if math.isfinite(factor) and factor > 0 else float(ratio)


def _constant(calls: Sequence[LossCall]) -> tuple[float, float, float]:
    """(score, its error, what it cannot exceed)."""
    if calls[0].fn in CLASSES:
        return _entropy(calls)
    means, spreads, num = [], [], 0
    for call in calls:
        if call.target is None or call.target.mean is None or call.target.std is None:
            raise NotSupervised("the targets were not measured")
        means.append(call.target.mean)
        spreads.append(call.target.std**2)
        num += int(np.prod(call.target.shape)) if call.target.shape else 1
    variance = float(np.mean(spreads) + np.var(means))
    if variance <= 0.0:
        raise NotSupervised("the targets are all the same")
    # |x| is at most the deviation on average, and Huber's loss at most half the square.
    scored = {
        "mse_loss": variance,
        "huber_loss": 0.5 * variance,
        "l1_loss": math.sqrt(variance),
        "smooth_l1_loss": math.sqrt(variance),
    }[calls[0].fn]
    between = float(np.std(spreads, ddof=1)) / math.sqrt(len(spreads)) if len(spreads) > 1 else 0.0
    error = scored * max(math.sqrt(2.0 / max(num, 1)), between / variance)
    return scored, error, math.inf


def _entropy(calls: Sequence[LossCall]) -> tuple[float, float, float]:
    """Of the frequencies of the labels seen, with the correction of Miller and Madow: few labels
    make it look too small. Where there are more classes than were counted, that of a guess among
    all of them.
    """
    classes = max(int(call.facts.num_classes or 2) for call in calls)
    counts: Counter[int] = Counter()
    for call in calls:
        facts = call.facts
        if facts.target_is_whole is False or not facts.target_counts:
            raise NotSupervised("the labels are no classes, or were not counted")
        if (facts.target_num_values or 0) > MOST_COUNTED:
            return math.log(classes), 0.0, math.log(classes)
        counts.update({k: n for k, n in facts.target_counts.items() if k != facts.ignore_index})
    total = sum(counts.values())
    if total == 0 or len(counts) < 2:
        raise NotSupervised("one class alone was seen among the labels")
    shares = np.array(list(counts.values()), np.float64) / total
    entropy = float(-(shares * np.log(shares)).sum())
    spread = float((shares * np.log(shares) ** 2).sum()) - entropy**2
    guess = math.log(max(classes, len(counts)))
    corrected = min(entropy + (len(counts) - 1) / (2.0 * total), guess)
    return corrected, math.sqrt(max(spread, 0.0) / total), guess


def beginning(losses: npt.ArrayLike) -> Level:
    """The level of the first tenth, of five losses at least."""
    known = finite(losses)
    return level(known[: max(5, len(known) // 10)])


def latest_fall(losses: npt.ArrayLike) -> float:
    """How far the last quarter lies under the third, or under the second, in standard errors."""
    second, third, last = (level(part(losses, at, at + 0.25)) for at in (0.25, 0.5, 0.75))
    return max(apart(third, last), apart(second, last))


def warms_up_until(run: Run) -> tuple[float, float]:
    """(share of the run at which the learning rate is highest, how many times the first it is)."""
    rates = finite(run.steps["lr"])
    if len(rates) < 2 or rates[0] < 0:
        return 0.0, 1.0
    peak = int(np.argmax(rates))
    return peak / (len(rates) - 1), float(rates[peak] / rates[0]) if rates[0] > 0 else math.inf


def evaluated_targets(run: Run, fn: str) -> int:
    """Targets of the evaluation that had most of them. A loss that is summed there, or not reduced
    at all, does not compare with the loss of one target.
    """
    by_step: Counter[int] = Counter()
    for event in run.of_kind("loss"):
        if event.phase == "eval" and event.data.get("fn") == fn:
            if event.data.get("reduction", "mean") not in ("mean", None):
                raise NotSupervised("evaluation does not average its loss")
            by_step[event.step] += int(np.prod(event.data.get("target_shape") or [0]))
    return max(by_step.values(), default=0)
