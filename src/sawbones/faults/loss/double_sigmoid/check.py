"""Sigmoid before a loss that applies sigmoid itself

## What it sees
What enters binary cross-entropy with logits (library or hand-written), cross-entropy, or binary
cross-entropy on deep steps, and the operator that made it. Fires when a loss that expects logits
gets the output of a sigmoid, all inside [0, 1], or when a sigmoid is taken of a sigmoid on the way
to a loss on probabilities. From step 0, when every deep step agrees.

## Why it matters
Probabilities taken for logits mean that the model can only answer between 0.5 and 0.73: the loss
can't fall far, gradients are small, and a threshold of 0.5 calls everything positive.

## Looks like
Loss stuck near 0.5 or above; all predictions positive; training far slower than it should be.

## Example
    probs = torch.sigmoid(model(x))
    loss = F.binary_cross_entropy_with_logits(probs, y)

## Use instead
    loss = F.binary_cross_entropy_with_logits(model(x), y)

## Confirm it
The script runs again with the scores handed on as they were before the sigmoid. Confirmed when the
loss ends clearly lower.

## False alarms
Sigmoid with binary_cross_entropy is right. Scores that happen to lie in [0, 1] without a sigmoid
are not looked at. Gates and attention inside the model are not what enters the loss. Soft targets
are targets, not inputs.

## References
PyTorch's documentation of BCEWithLogitsLoss, which "combines a Sigmoid layer and the BCELoss in one
single class".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Finding, Fix, Op, Run
from sawbones.stats.loss_calls import Seen, reaching
from sawbones.trace.locate import locate

NEEDS = ("loss_calls", "ops")
EXPLAINS = (
    "model.vanishing-gradients",
    "optimizer.lr-too-low",
    "evaluation.collapsed-prediction",
    "evaluation.metric-threshold",
    "loss.wrong-loss",
    "data.class-imbalance",
    "model.dead-units",
)
EXPERIMENT = "sigmoid_removed"

_ON_LOGITS = (
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "soft_margin_loss",
    "multilabel_soft_margin_loss",
)
_SIGMOID = ("sigmoid", "sigmoid_")
_CLAMPING = ("clamp", "clamp_", "clamp_min", "clamp_max", "dropout")


def check(run: Run) -> Iterator[Finding]:
    kinds = (*_ON_LOGITS, "binary_cross_entropy")
    calls = [s for s in reaching(run) if s.is_finite and s.call.fn in kinds]
    if not calls:
        raise NothingToJudge("no loss on logits or on probabilities of two classes was called")
    doubled = [(seen, op) for seen in calls if (op := _extra_sigmoid(seen)) is not None]
    if not doubled:
        return
    seen, sigmoid = doubled[0]
    here = [s for s in calls if s.call.site == seen.call.site]
    found = [s for s, _ in doubled if s.call.site == seen.call.site]
    if len(found) < len(here):
        return
    last = found[-1]
    value = math.nan if last.call.value is None else last.call.value
    low, high = (sigmoid.outputs[0].min, sigmoid.outputs[0].max) if sigmoid.outputs else (0, 1)
    built = seen.facts.input_built_at if seen.call.fn in _ON_LOGITS else None
    yield finding(
        f"{seen.call.fn} gets the output of a sigmoid and takes the sigmoid of it again",
        locate(built, sigmoid, seen.call),
        (
            counted(
                f"the scores come from a sigmoid and lie in [{low or 0:.3g}, {high or 1:.3g}] on "
                f"{len(found)} of {len(here)} steps",
                len(found),
                len(here),
                limits.STEPS_AGREEING,
                signal="loss_calls",
                steps=[s.deep.step for s in found],
            ),
            context(
                "taken for logits they allow answers between 0.5 and 0.731 only; the loss is "
                f"{value:.3g} at step {last.deep.step}",
                signal="loss_calls",
                steps=(last.deep.step,),
                value=last.call.value,
            ),
        ),
        Fix(
            "Remove the sigmoid and hand the raw scores to the loss; apply sigmoid only "
            "where probabilities are shown."
        ),
        params=_what_to_undo(sigmoid),
    )


def _extra_sigmoid(seen: Seen) -> Op | None:
    maker = seen.maker()
    for _ in range(3):  # a clamp against log(0) does not make a probability a logit
        if maker is None or maker.name not in _CLAMPING or not maker.inputs:
            break
        maker = seen.maker(maker)
    if maker is None or maker.name not in _SIGMOID or not maker.inputs:
        return None
    if seen.call.fn in _ON_LOGITS:
        return maker if seen.facts.input_in_unit_interval is not False else None
    below = seen.maker(maker)
    return below if below is not None and below.name in _SIGMOID else None


def _what_to_undo(sigmoid: Op) -> dict[str, object]:
    if sigmoid.site is None or not sigmoid.inputs:
        return {}
    return {
        "file": sigmoid.site.file,
        "line": sigmoid.site.line,
        "tail": list(sigmoid.inputs[0].shape[1:]),
    }
