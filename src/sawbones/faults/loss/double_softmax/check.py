"""Softmax before a loss that applies softmax itself

## What it sees
What enters a cross-entropy on deep steps, library or hand-written: rows that are never negative and
sum to 1 (within 0.002) are probabilities, whatever made them: a softmax, a mixture of several, their
mean, exp of log-softmax. The loss will take the softmax of them once more. The
same when log-softmax is taken of probabilities. Fires from step 0, when every deep step says
so. Log-probabilities into cross-entropy are only suspected: log-softmax of them changes nothing.

## Why it matters
Scores between 0 and 1 can't be far apart, so the loss can't fall under log(1 + (C - 1)/e), and the
gradients are small and vanish when the model is sure and wrong.

## Looks like
Loss starts at log C and gets stuck well above zero although accuracy is good; training is slow.

## Example
    def forward(self, x):
        return F.softmax(self.fc(x), dim=-1)

    loss = F.cross_entropy(model(x), y)

## Use instead
    def forward(self, x):
        return self.fc(x)

    loss = F.cross_entropy(model(x), y)

## Confirm it
The script runs again with the logarithm of the probabilities handed to the loss, which undoes the
extra softmax; they are changed where a single softmax makes them, and else where the loss is called. Confirmed when the loss ends clearly lower.

## False alarms
nll_loss on log_softmax, cross_entropy on logits, KL divergence on log-probabilities and
binary_cross_entropy on probabilities are right and silent. Soft targets and distillation have
probabilities as targets, not as inputs. Cosine similarities and contrastive scores do not sum to 1.

## References
PyTorch's documentation of CrossEntropyLoss: "the input is expected to contain the unnormalized
logits"; one of the most frequent questions of its forum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Finding, Fix, Op, Run, Value
from sawbones.stats.loss_calls import Seen, reaching
from sawbones.trace.locate import locate

NEEDS = ("loss_calls",)
EXPLAINS = (
    "model.vanishing-gradients",
    "optimizer.lr-too-low",
    "evaluation.collapsed-prediction",
    "loss.wrong-loss",
    "model.bad-init",
)
EXPERIMENT = "softmax_removed"


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in reaching(run) if s.call.fn in ("cross_entropy", "nll_loss") and s.is_finite]
    calls = [s for s in calls if s.number("num_classes") >= 2]
    if not calls:
        raise NothingToJudge("no loss over two or more classes was called")
    doubled = [(seen, extra) for seen in calls if (extra := _extra_softmax(seen)) is not False]
    if not doubled:
        yield from _harmless(calls)
        return
    seen, extra = doubled[0]
    here = [s for s in calls if s.call.site == seen.call.site]
    found = [s for s, _ in doubled if s.call.site == seen.call.site]
    if len(found) < len(here):
        return  # on some step the input was no probability: not a softmax that is always there
    last = found[-1]
    classes = int(seen.number("num_classes"))
    floor = math.log(1 + (classes - 1) / math.e)
    low, high = seen.number("input_min"), seen.number("input_max")
    maker, built = seen.maker(), seen.facts.input_built_at
    if isinstance(extra, Op):
        maker, built = extra, None
        low, high = extra.outputs[0].min or 0, extra.outputs[0].max or 1
    undo = _what_to_undo(seen, maker, classes)
    # Where no single softmax made them, the loss is the place to change.
    where = locate(seen.call, maker) if "dim" in undo else locate(built, maker, seen.call)
    yield finding(
        "The loss gets probabilities and takes the softmax of them again",
        where,
        (
            counted(
                f"rows that enter {seen.call.fn} lie in [{low:.3g}, {high:.3g}] and sum to 1, on "
                f"{len(found)} of {len(here)} steps",
                len(found),
                len(here),
                limits.STEPS_AGREEING,
                signal="loss_calls",
                steps=[s.deep.step for s in found],
            ),
            context(
                f"with {classes} classes the loss can't fall under {floor:.3g}; it is "
                f"{last.call.value or math.nan:.3g} at step {last.deep.step}, where "
                f"{100 * last.number('accuracy'):.0f} % of the targets are predicted right",
                signal="loss_calls",
                steps=(last.deep.step,),
                value=last.call.value,
                expected=floor,
            ),
        ),
        Fix(
            "Hand the logarithm of the probabilities to nll_loss."
            if "dim" in undo
            else "Remove the softmax and hand the raw scores to the loss; apply softmax only "
            "where probabilities are shown or sampled."
        ),
        params=undo,
    )


def _what_to_undo(seen: Seen, maker: Op | None, classes: int) -> dict[str, str | int]:
    """The one softmax that made the probabilities, or else the call of the loss."""
    if maker is not None and maker.name == "softmax" and maker.site and maker.inputs:
        return {
            "file": maker.site.file,
            "line": maker.site.line,
            "classes": classes,
            "ndim": len(maker.inputs[0].shape),
        }
    facts, site = seen.facts, seen.call.site
    if facts.by_hand or not facts.input_is_probability or site is None or facts.class_dim is None:
        return {}
    return {"file": site.file, "line": site.line, "dim": facts.class_dim}


def _extra_softmax(seen: Seen) -> Op | bool:
    """True: the input itself is a probability. An operator: what made the probabilities under the
    log-softmax. False: neither.
    """
    if seen.call.fn == "cross_entropy":
        return bool(seen.facts.input_is_probability)
    maker = seen.maker()
    if maker is None or maker.name != "log_softmax" or not maker.inputs:
        return False
    below = seen.maker(maker)
    if below is None or not below.outputs:
        return False
    return below if below.name == "softmax" or _are_shares(maker.inputs[0], seen) else False


def _are_shares(given: Value, seen: Seen) -> bool:
    """Numbers between 0 and 1 that add up to the number of their rows."""
    if given.min is None or given.max is None or given.mean is None or given.nonfinite:
        return False
    total = given.mean * seen.number("num_classes")
    off = (given.max - 1, abs(total - 1))
    return given.min >= 0 and all(limits.SHARES_ROUNDED.kept_by(o) for o in off)


def _harmless(calls: list[Seen]) -> Iterator[Finding]:
    seen = calls[0]
    twice = all(s.call.fn == "cross_entropy" and s.facts.input_is_log_probability for s in calls)
    if not twice or seen.facts.input_made_by != "log_softmax":
        return
    yield finding(
        "cross_entropy gets log-probabilities: log-softmax is taken twice, without effect",
        locate(seen.facts.input_made_at, seen.call),
        (
            context(
                "rows that enter cross_entropy are log-probabilities",
                signal="loss_calls",
                steps=(seen.deep.step,),
            ),
        ),
        Fix("Use nll_loss for log-probabilities, or hand the raw scores to cross_entropy."),
    )
