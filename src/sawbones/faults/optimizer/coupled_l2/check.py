"""L2 through the gradient under an adaptive optimizer, where decoupled decay is meant

## What it sees
Adam, NAdam or RAdam with a weight decay of 0.01 or more that is added to the gradient, or a loss
term that squares most of the model's weights under such an optimizer or AdamW. Step 0 is enough.

## Why it matters
Adam divides the decay by the size of the gradient: weights with large gradients are hardly decayed,
those with small ones are wiped out. AdamW decays all alike.

## Looks like
Weight decay that works with SGD or AdamW does little, or ruins training, with Adam.

## Example
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.05)

## Use instead
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

## Confirm it
The class and its decay, or the squared weights in the operator trace, are the reading.

## False alarms
SGD, where both are the same up to a factor. Adam with 5e-3 or less, which is common practice.
Penalties on the distance to other weights, on activations, or on a few embeddings of a batch.

## References
Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, counted, finding
from sawbones.evidence.limits import optimizer as limits
from sawbones.evidence.limits.loop import ROOT_IS_LOSS
from sawbones.schema import DeepStep, Finding, Fix, Op, Optimizer, Run, Site
from sawbones.stats.relative import relative_difference
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("optimizers", "tensors")
EXPLAINS = ("optimizer.decay-on-norm-bias",)
EXPERIMENT = None
WITH_DECOUPLED_FORM = ("Adam", "NAdam", "RAdam")
COUPLED = (*WITH_DECOUPLED_FORM, "Adamax", "RMSprop", "Adagrad")
SQUARES = ("pow", "square", "norm", "vector_norm", "linalg_vector_norm", "mul")


def check(run: Run) -> Iterator[Finding]:
    holding = {t.optimizer for t in run.tensors}
    adaptive = [o for o in run.optimizers if o.cls in (*COUPLED, "AdamW") and o.index in holding]
    if not adaptive:
        raise NothingToJudge("no adaptive optimizer of torch's holds the model's parameters")
    for optimizer in adaptive:
        decay = max((float(g.get("weight_decay") or 0) for g in optimizer.groups), default=0)
        decoupled = optimizer.cls == "AdamW" or any(
            g.get("decoupled_weight_decay") for g in optimizer.groups
        )
        coupled = not decoupled and limits.COUPLED_DECAY.reached_by(decay)
        found = _by_argument(optimizer, decay) if coupled else _by_term(run, optimizer)
        if found is not None:
            yield found
            return


def _by_argument(optimizer: Optimizer, decay: float) -> Finding:
    return finding(
        f"{optimizer.cls} adds its weight decay of {decay:g} to the gradient, where it is "
        "divided away again",
        locate(optimizer),
        (
            compared(
                f"weight_decay={decay:g} in {optimizer.cls}, which couples it to the gradient",
                decay,
                limits.COUPLED_DECAY,
                expected=0,
                signal="optimizers",
            ),
        ),
        Fix(f"Use {optimizer.cls}W, or decoupled_weight_decay=True, with the same value."),
        at_most="likely" if optimizer.cls in WITH_DECOUPLED_FORM else "suspected",
    )


def _by_term(run: Run, optimizer: Optimizer) -> Finding | None:
    """A line that squares most of the matrices of the model, outside of any module."""
    shapes = Counter(
        t.shape for t in run.tensors if t.in_model and t.requires_grad and len(t.shape) >= 2
    )
    total = sum(shapes.values())
    if total < 2:
        return None
    for deep in run.deep[:3]:
        for site, ops in _squares(deep).items():
            squared = sum((Counter(op.inputs[0].shape for op in ops) & shapes).values())
            many = limits.SQUARED_MATRICES.reached_by(squared / total)
            if not many or not _enters_loss(run, deep, ops):
                continue
            return finding(
                f"The loss holds the squared weights, and {optimizer.cls} divides their gradient "
                "away again",
                locate(site, optimizer),
                (
                    counted(
                        f"{squared / total:.0%} of the model's matrices are squared and summed at "
                        "one line",
                        squared,
                        total,
                        limits.SQUARED_MATRICES,
                        signal="ops",
                        steps=(0,),
                    ),
                ),
                Fix("Leave the term out and use AdamW with weight_decay."),
            )
    return None


def _squares(deep: DeepStep) -> dict[Site, list[Op]]:
    """By line: operators that square a tensor, but for distances to something else."""
    found: dict[Site, list[Op]] = {}
    distances = {v.id for op in deep.ops if op.name in ("sub", "rsub") for v in op.outputs}
    for op in deep.ops:
        if op.site is None or op.name not in SQUARES or op.module or not op.inputs:
            continue
        if not op.inputs[0].requires_grad or op.inputs[0].id in distances:
            continue
        if op.name == "mul" and [v.id for v in op.inputs[1:2]] != [op.inputs[0].id]:
            continue
        found.setdefault(op.site, []).append(op)
    return found


def _enters_loss(run: Run, deep: DeepStep, ops: list[Op]) -> bool:
    """The root of the backward pass depends on these; a norm that is only logged does not count."""
    values = [e.data.get("value") for e in run.of_kind("backward") if e.step == deep.step]
    reached = StepGraph(deep).reached(v for op in ops for v in op.outputs)
    ends = [
        v.mean
        for op in deep.ops
        for v in op.outputs
        if v.shape == () and v.requires_grad and v.mean is not None and v.id in reached
    ]
    return any(
        ROOT_IS_LOSS.kept_by(relative_difference(end, value))
        for end in ends
        for value in values
        if isinstance(value, float)
    )
