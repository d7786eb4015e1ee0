"""A query that may see no key at all

## What it sees
The first operator whose result is not finite: a softmax or an attention that was given a row of
nothing but -inf. Fires at that step. Also, from step 0, a causal mask that leaves out the diagonal
in a model that predicts the next token: the first position sees nothing, and no position sees
itself.

## Why it matters
The softmax of a row without any key is 0/0. One such row in one batch turns the loss, and with the
next update every weight, into NaN.

## Looks like
Loss is NaN from one step to the next, on some batches only: with left padding, with a graph node
without neighbours, with an empty document.

## Example
    allowed = causal & real[:, None, :]
    scores = scores.masked_fill(~allowed, float("-inf"))

## Use instead
    allowed = causal & real[:, None, :] | torch.eye(t, dtype=torch.bool)
    scores = scores.masked_fill(~allowed, float("-inf"))

## Confirm it
The operator's input is the proof: finite scores, and rows in which all of them are masked.

## False alarms
Rows that are masked with a large negative number give even weights, no NaN;
scaled_dot_product_attention gives zeros for them. Scores that are NaN or infinite before they are
masked have another cause. A diagonal left out where targets are not shifted (the model must not see
the token that it has to restore) is right.

## References
Left padding with a causal mask, and MultiheadAttention with a fully padded example, are the
reported cases.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Run, Site
from sawbones.stats.dataflow import Flow
from sawbones.stats.failures import Birth, first_nonfinite
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import (
    attention_ops,
    built_sites,
    predictions,
    self_attentions,
    shape_of,
)

NEEDS = ("deep",)
EXPLAINS = (
    "optimizer.lr-too-high",
    "loss.unstable-log",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "model.unstable-norm",
    "data.nonfinite-input",
    "data.degenerate-samples",
    "loop.amp-no-scaler",
)
EXPERIMENT = None
ORDINARY = 1e4  # products of such values and weights stay far from overflowing
_NORMALISING = (
    "softmax",
    "log_softmax",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "_softmax",
)
_COMBINING = (
    "__and__",
    "bitwise_and",
    "logical_and",
    "mul",
    "__iand__",
    "tril",
    "triu",
    "eye",
    "logical_or",
    "bitwise_or",
)


def check(run: Run) -> Iterator[Finding]:
    birth = first_nonfinite(run)
    if birth is not None and birth.op in _NORMALISING and birth.inputs and birth.phase == "forward":
        masked = max(int(v.get("nonfinite") or 0) for v in birth.inputs)
        highest = birth.inputs[0].get("max")
        fine = birth.reason in ("", "fully masked softmax row") and (
            birth.op != "softmax" or masked > 0
        )
        if fine and (highest is None or abs(highest) < 1e30) and not _overflowed(birth):
            text = (
                f"{birth.op} made the first non-finite value at step {birth.step}: its input has {masked} masked scores, whole "
                f"rows among them, and the rest lies in [{birth.inputs[0].get('min')}, {highest}]"
            )
            yield _finding(text, birth.step, _where(run, birth.site))
            return
    yield from _no_diagonal(run)


def _overflowed(birth: Birth) -> bool:
    """Seen between deep steps, where only values and weights are known, not the mask: those may
    have made the NaN themselves.
    """
    if birth.reason or birth.op != "multi_head_attention_forward":
        return False
    sizes = [abs(v.get(side) or 0.0) for v in birth.inputs for side in ("min", "max")]
    return any((v.get("nonfinite") or 0) > 0 for v in birth.inputs) or max(sizes) > ORDINARY


def _finding(text: str, step: int, where: tuple[Site, ...]) -> Finding:
    return Finding(
        "model.over-masking",
        "proven",
        0.96,
        "Some queries may see no key at all",
        where,
        (Evidence(text, "nonfinite", (step,)),),
        Fix(
            "Leave every query at least one key (its own position), or leave rows without "
            "keys out of the attention."
        ),
    )


def _where(run: Run, site: Site | None) -> tuple[Site, ...]:
    """Where the mask was put together, as far as a deep step or the time before training shows
    it.
    """
    found: list[Site] = []
    keys = 2
    for deep in run.deep:
        for attention, op in attention_ops(deep):
            if attention.site == site:
                keys = attention.keys
                found += _combined(deep, op.inputs[0].id, op.index)
    if not found:
        for deep in run.deep[:1]:
            flow = Flow(deep)
            for op in flow.ops:
                if op.site == site and op.name in _NORMALISING and op.inputs:
                    keys = op.inputs[0].shape[-1]
                    found += _combined(deep, op.inputs[0].id, op.index)
    made = built_sites(run, ("eye",), keys) or built_sites(run, ("tril", "triu"), keys)
    return places(*found[:1], *made[:1], site)


def _combined(deep: DeepStep, scores: int, before: int) -> list[Site]:
    """Lines that combined masks, behind the value that hides scores."""
    flow = Flow(deep)
    start = next(
        (v for op in flow.ops if op.index <= before for v in op.inputs if v.id == scores), None
    )
    if start is None:
        return []
    for op in flow.behind(start, before, 12):
        if op.name in ("masked_fill", "masked_fill_", "where", "add", "__setitem__"):
            for value in op.inputs:
                if not value.requires_grad:
                    behind = [
                        o
                        for o in flow.behind(value, op.index, 30)
                        if o.name in _COMBINING and o.site is not None
                    ]
                    if behind:
                        return [o.site for o in behind if o.site is not None]
    return []


def _no_diagonal(run: Run) -> Iterator[Finding]:
    for prediction in predictions(run)[:1]:
        for attention, _ in self_attentions(prediction.deep, prediction.source):
            side, diagonal = shape_of(attention)
            if side == "lower" and diagonal is not None and diagonal < 0:
                text = (
                    f"the mask ends {-diagonal} under the diagonal: no position sees itself, "
                    "and the first sees nothing"
                )
                made = built_sites(run, ("tril", "triu"), attention.keys)
                where = places(*made[:1], as_site(attention.mask.get("mask_site")), attention.site)
                yield _finding(text, prediction.deep.step, where)
                return
