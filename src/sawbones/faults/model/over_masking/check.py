"""A query that may see no key at all

## What it sees
The first operator whose result is not finite: a softmax or an attention that was given a row of
nothing but -inf. Fires at that step. Also, from step 0, queries all of whose keys are hidden by a
large negative number, when the loss depends on what they see: likely. And a causal mask that leaves out the diagonal
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
Padded queries that a large negative number hides whole give even weights, no NaN, and the gradient
of what they see is zero: nothing comes of them. scaled_dot_product_attention gives zeros for them. Scores that are NaN or infinite before they are
masked have another cause. A diagonal left out where targets are not shifted (the model must not see
the token that it has to restore) is right.

## References
Left padding with a causal mask, and MultiheadAttention with a fully padded example, are the
reported cases.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, counted, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.failures import Birth, first_nonfinite
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import attention_ops, predictions, self_attentions, shape_of
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import made_at

NEEDS = ("deep",)
USES = ("nonfinite", "made_tensors")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loss.value-range",  # of values that are no numbers any more
    "loss.unstable-log",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "model.unstable-norm",
    "data.nonfinite-input",
    "data.degenerate-samples",
    "loop.amp-no-scaler",
)
EXPERIMENT = None
_NORMALISING = (
    "softmax",
    "log_softmax",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "_softmax",
)
_HIDING = ("masked_fill", "masked_fill_", "where", "add", "__setitem__")
_COMBINING = ("logical_and", "mul", "tril", "triu", "eye", "logical_or")


def check(run: Run) -> Iterator[Finding]:
    birth = first_nonfinite(run)
    attends = any(deep.attention or deep.probes.get("blind_rows") for deep in run.deep)
    if birth is None and not attends:
        raise NothingToJudge("no attention was seen, and every value was finite")
    if birth is not None and _is_masked_row(birth):
        masked = max(v.nonfinite for v in birth.inputs)
        text = (
            f"{birth.op} made the first non-finite value at step {birth.step}: its input has "
            f"{masked} masked scores, whole rows among them, and the rest lies in "
            f"[{birth.inputs[0].min}, {birth.inputs[0].max}]"
        )
        yield _finding(_no_keys(text, birth.step), _where(run, birth.site))
        return
    yield from [*_no_diagonal(run)] or _hidden_rows(run)


def _hidden_rows(run: Run) -> Iterator[Finding]:
    """Every key of a query is hidden by a finite number: it looks at all of them alike."""
    for deep in run.deep:
        for row in deep.probes.get("blind_rows") or ():
            if not limits.BLIND_QUERIES.reached_by(row["counted"] / row["rows"]):
                continue
            text = (
                f"a number hides all keys of {row['hidden']} of {row['rows']} queries, which so "
                f"look at every key alike; the loss depends on {row['counted']} of them"
            )
            op = StepGraph(deep).at(row["op"])
            reading = counted(
                text,
                row["counted"],
                row["rows"],
                limits.BLIND_QUERIES,
                signal="deep",
                steps=(deep.step,),
            )
            yield _finding(reading, _hidden_by(run, deep, op))
            return


def _hidden_by(run: Run, deep: DeepStep, op: Op | None) -> tuple[Site, ...]:
    """Where a mask of that size got its diagonal, where it was put together and where it was
    used.
    """
    if op is None:
        return ()
    scores = op.inputs[0]
    made = made_at(run, ("eye", "fill_diagonal_"), square=max(scores.shape))
    hiding = StepGraph(deep).behind(scores, op.index, 12)
    used = next((o for o in hiding if o.name in _HIDING), None)
    return locate(*made[:1], *_combined(deep, scores, op.index)[:1], used, op)


def _is_masked_row(birth: Birth) -> bool:
    """Attention that was given finite scores and masks, and gave something that is not finite."""
    if birth.op not in _NORMALISING or not birth.inputs or birth.phase != "forward":
        return False
    infinite = any(v.nonfinite for v in birth.inputs)
    if birth.reason not in ("", "fully masked softmax row"):
        return False
    if birth.op == "softmax" and not infinite:
        return False
    if limits.SCORES_OVERFLOWED.reached_by(abs(birth.inputs[0].max or 0)):
        return False
    if birth.reason or birth.op != "multi_head_attention_forward":
        return True
    # Seen between deep steps, where only values and weights are known, not the mask: those may have
    # made the NaN themselves.
    sizes = [abs(side or 0) for v in birth.inputs for side in (v.min, v.max)]
    return not infinite and not limits.ORDINARY_VALUES.passed_by(max(sizes))


def _no_keys(text: str, step: int) -> Evidence:
    return exact(text, 0, expected=1, signal="nonfinite", steps=(step,))  # keys of such a query


def _finding(reading: Evidence, where: tuple[Site, ...]) -> Finding:
    return finding(
        "Some queries may see no key at all",
        where,
        (reading,),
        Fix(
            "Leave every query at least one key (its own position), or leave rows without "
            "keys out of the attention."
        ),
    )


def _where(run: Run, site: Site | None) -> tuple[Site, ...]:
    """Where the mask was put together, as far as a deep step or the time before training shows
    it.
    """
    pairs = [(d, a.keys, op) for d in run.deep for a, op in attention_ops(d) if a.site == site]
    found = [line for deep, _, op in pairs for line in _combined(deep, op.inputs[0], op.index)]
    if not found:
        again = [
            (deep, op.inputs[0].shape[-1], op)
            for deep in run.deep[:1]
            for op in StepGraph(deep).ops
            if op.site == site and op.name in _NORMALISING and op.inputs
        ]
        found = [line for deep, _, op in again for line in _combined(deep, op.inputs[0], op.index)]
        pairs += again
    keys = pairs[-1][1] if pairs else 2
    made = made_at(run, ("eye",), square=keys) or made_at(run, ("tril", "triu"), square=keys)
    return locate(*found[:1], *made[:1], site)


def _combined(deep: DeepStep, scores: Value, before: int) -> list[Site]:
    """Lines that combined masks, behind the value that hides scores."""
    graph = StepGraph(deep)
    for op in graph.behind(scores, before, 12):
        if op.name not in _HIDING:
            continue
        for value in op.inputs:
            behind = [] if value.requires_grad else graph.behind(value, op.index, 30)
            sites = [o.site for o in behind if o.name in _COMBINING and o.site is not None]
            if sites:
                return sites
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
                made = made_at(run, ("tril", "triu"), square=attention.keys)
                where = locate(*made[:1], as_site(attention.mask.get("mask_site")), attention)
                yield _finding(_no_keys(text, prediction.deep.step), where)
                return
