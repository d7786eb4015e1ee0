"""A logarithm, root, exponential or quotient in the loss that has no finite answer

## What it sees
The first operator that made a value non-finite (or whose gradient is), with the range of what it
was given. Fires when it is a logarithm of zero or less, a root of zero or less, the exponential of
a large number or a division by zero, outside of the model's own modules, with finite inputs of
ordinary size, in a run that had not diverged before. Fires at the step of the first NaN.

## Why it matters
One such element makes the loss, all gradients and then all weights NaN; nothing recovers from that.

## Looks like
Training goes well, then the loss is NaN from one step to the next; or it is NaN at once, or only
the gradients are.

## Example
    probs = torch.softmax(logits, dim=-1)
    loss = -(target * torch.log(probs)).sum(-1).mean()

## Use instead
    loss = -(target * torch.log_softmax(logits, dim=-1)).sum(-1).mean()

## Confirm it
The script runs again with that one operator kept inside its domain. Confirmed when the loss is then
finite to the end and does not diverge.

## False alarms
A run that diverges because of its LR ends in an overflow too: its loss had grown before, and it
still diverges when the operator is guarded, which refutes. Masks of -inf before a softmax are no
accident. NaN in the data is not made by an operator. A softmax row that is masked completely
belongs to the mask.

## References
log(softmax(x)) instead of log_softmax(x), sqrt at 0 in pairwise distances and 0 * log(0) in
divergences; torch has log_softmax, logsigmoid, xlogy and log1p because of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.evidence import exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loss as limits
from sawbones.schema import DeepStep, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.failures import model_paths, spoiling
from sawbones.stats.loss_calls import as_site
from sawbones.stats.series import diverged, finite
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("ops",)
USES = ("nonfinite",)
EXPLAINS = (
    "loop.loss-spike",
    "loss.value-range",  # of values that are no numbers any more
    "loop.exploding-gradients",
    "optimizer.lr-too-high",
    "model.unstable-norm",
    "data.nonfinite-input",
    "loop.amp-no-scaler",
)
EXPERIMENT = "domain_guarded"
MIN_LOSSES = 5  # before the failure, to know where they were going

_LOGS = frozenset({"log", "log2", "log10", "log1p", "xlogy", "logit"})
_ROOTS = frozenset(
    {"sqrt", "rsqrt", "pow", "norm", "vector_norm", "cdist", "dist", "pairwise_distance", "std"}
)
_EDGES = frozenset({"acos", "asin", "arccos", "arcsin"})
_EXPS = frozenset({"exp", "expm1", "exp2", "sinh", "cosh"})
_QUOTIENTS = frozenset({"div", "rdiv", "div_", "reciprocal"})


@dataclass(frozen=True)
class _Birth:
    step: int
    name: str
    site: Site | None
    low: float
    high: float
    number: int
    phase: str
    in_model: bool


def check(run: Run) -> Iterator[Finding]:
    births = [
        b
        for b in (*_from_deep(run), *_from_journal(run))
        if b.name in _LOGS | _ROOTS | _EDGES | _EXPS | _QUOTIENTS
    ]
    birth = min(births, key=lambda b: b.step, default=None)
    if birth is None or birth.in_model or _had_diverged(run, birth.step):
        return
    if limits.INPUT_EXPLODED.passed_by(max(abs(birth.low), abs(birth.high))):
        return
    backward = birth.phase == "backward"
    made = "1 output that is" if birth.number == 1 else f"{birth.number} outputs that are"
    result = "has no finite gradient there" if backward else f"gave {made} not finite"
    yield finding(
        f"{_what(birth)} makes the {'gradient' if backward else 'loss'} non-finite",
        locate(birth),
        (
            exact(
                f"at step {birth.step} {birth.name} was given values in [{birth.low:.3g}, "
                f"{birth.high:.3g}], all finite, and {result}",
                max(birth.number, 1),
                signal="ops",
                steps=(birth.step,),
            ),
        ),
        Fix(_fix(birth)),
        at_most="likely",  # whether guarding it is the cure is what the trial shows
        params={
            "name": birth.name,
            "file": birth.site.file if birth.site else "",
            "line": birth.site.line if birth.site else 0,
        },
    )


def _from_deep(run: Run) -> Iterator[_Birth]:
    paths = model_paths(run)
    for deep, record in spoiling(run):
        if record.get("reason") == "weights already non-finite":
            continue
        if record.get("reason") == "bad input":
            yield from _behind(deep, record, paths)
            continue
        low, high = _range([(i.get("min"), i.get("max")) for i in record.get("inputs") or ()])
        number = int((record.get("output") or {}).get("nonfinite", 0))
        inside = record.get("module", "") in paths
        phase = record.get("phase", "forward")
        yield _Birth(
            deep.step, record["name"], as_site(record.get("site")), low, high, number, phase, inside
        )


def _behind(deep: DeepStep, record: Mapping[str, Any], paths: set[str]) -> Iterator[_Birth]:
    """An infinity that was harmless where it was made (log of data) and met a zero later."""
    graph = StepGraph(deep, with_no_grad=True)
    last = graph.at(int(record["op"]))
    for value in _spoiled(last) if last is not None else ():
        for op in graph.behind(value, int(record["op"]), 32, _spoiled):
            if op.inputs and not _spoiled(op):
                low, high = op.inputs[0].min or 0, op.inputs[0].max or 0
                number, inside = op.outputs[0].nonfinite, op.module in paths
                yield _Birth(deep.step, op.name, op.site, low, high, number, "forward", inside)
                return


def _spoiled(op: Op) -> list[Value]:
    return [v for v in op.inputs if v.nonfinite]


def _from_journal(run: Run) -> Iterator[_Birth]:
    record = run.nonfinite
    if record is None or not record.inputs or any(i.nonfinite for i in record.inputs):
        return
    site = record.site
    paths = model_paths(run)
    inside = {
        op.site
        for deep in run.deep[:1]
        for op in deep.ops
        if op.module in paths and op.name == record.op
    }
    low, high = _range([(i.min, i.max) for i in record.inputs])
    number = record.nonfinite
    yield _Birth(record.step, record.op, site, low, high, number, "forward", site in inside)


def _range(inputs: Sequence[tuple[float | None, float | None]]) -> tuple[float, float]:
    lows = finite([low for low, _ in inputs if low is not None])
    highs = finite([high for _, high in inputs if high is not None])
    return (float(lows.min()), float(highs.max())) if len(lows) and len(highs) else (0, 0)


def _had_diverged(run: Run, step: int) -> bool:
    before = finite(run.losses[run.steps["step"] < step] if "step" in run.steps else ())
    if len(before) < MIN_LOSSES:
        return False
    growth = float(np.max(np.abs(before))) / max(abs(float(before[0])), TINY)
    return diverged(before, limits.LOSS_DOUBLED.value) or limits.LOSS_EXPLODED.passed_by(growth)


def _what(birth: _Birth) -> str:
    if birth.name in _EDGES:
        return f"{birth.name} at or past 1"
    if birth.phase == "backward":
        return f"{birth.name} at zero"
    if birth.name in _LOGS:
        return "A logarithm of zero" if birth.low >= 0 else "A logarithm of a negative number"
    if birth.name in _ROOTS:
        return "A root of a negative number" if birth.low < 0 else "A root of zero"
    return "An exponential that overflows" if birth.name in _EXPS else "A division by zero"


def _fix(birth: _Birth) -> str:
    if birth.name in _LOGS:
        return (
            "Use the stable form (log_softmax, logsigmoid, xlogy, cross_entropy on logits), "
            "or clamp the argument above zero."
        )
    if birth.name in _ROOTS:
        return (
            "Clamp the argument to a small positive number before the root: "
            "x.clamp(min=1e-6).sqrt()."
        )
    if birth.name in _EDGES:
        return (
            "Clamp the argument a little inside of -1 and 1 (1e-6): at the edge there is no "
            "finite slope; or use atan2."
        )
    if birth.name in _EXPS:
        return "Subtract the maximum first, or use logsumexp, softplus or log_softmax."
    return "Add a small number to the divisor, or clamp it away from zero."
