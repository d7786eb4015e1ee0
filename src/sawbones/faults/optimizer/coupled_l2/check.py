"""L2 through the gradient under an adaptive optimizer, where decoupled decay is meant

## What it sees
Adam, NAdam or RAdam with a weight decay of 0.005 or more that is added to the gradient, or a loss
term that squares most of the model's weights under such an optimizer or AdamW. Step 0 is enough.
Smaller values are common practice and mentioned at most.

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
SGD, where both are the same up to a factor. Adam with 1e-4 or 1e-5. Penalties on the distance to
other weights, on activations, or on a few embeddings of a batch.

## References
Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Optimizer, Run, Site
from sawbones.stats.dataflow import Flow

NEEDS = ("optimizers", "tensors")
EXPLAINS = ("optimizer.decay-on-norm-bias",)
EXPERIMENT = None
ADAPTIVE = ("Adam", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad")
ASKED = 0.005
SQUARES = ("pow", "square", "norm", "vector_norm", "linalg_vector_norm", "__pow__", "mul")


def check(run: Run) -> Iterator[Finding]:
    for optimizer in run.optimizers:
        if optimizer.cls not in (*ADAPTIVE, "AdamW") or not any(
            t.optimizer == optimizer.index for t in run.tensors
        ):
            continue
        decay = max((float(g.get("weight_decay") or 0.0) for g in optimizer.groups), default=0.0)
        if (
            decay > 0
            and optimizer.cls != "AdamW"
            and not any(g.get("decoupled_weight_decay") for g in optimizer.groups)
        ):
            yield _by_argument(optimizer, decay)
            return
        place = _by_loss(run)
        if place is not None:
            yield _by_term(optimizer, *place)
            return


def _by_argument(optimizer: Optimizer, decay: float) -> Finding:
    sure = decay >= ASKED and optimizer.cls in ADAPTIVE[:3]
    return Finding(
        "optimizer.coupled-l2",
        "likely" if sure else "suspected",
        0.88 if sure else 0.35,
        (
            f"{optimizer.cls} adds its weight decay of {decay:g} to the gradient, where it is "
            "divided away again"
        ),
        (optimizer.site,) if optimizer.site else (),
        (
            Evidence(
                f"weight_decay={decay:g} in {optimizer.cls}, which couples it to the gradient",
                "optimizers",
                (),
                decay,
                0.0,
            ),
        ),
        Fix(
            f"Use {optimizer.cls}W, or decoupled_weight_decay=True, with the same value.",
            replace=("optim.Adam(", "optim.AdamW(") if optimizer.cls == "Adam" else None,
        ),
    )


def _by_term(optimizer: Optimizer, site: Site, share: float) -> Finding:
    return Finding(
        "optimizer.coupled-l2",
        "likely",
        0.85,
        (
            f"The loss holds the squared weights, and {optimizer.cls} divides their gradient "
            "away again"
        ),
        (site, *((optimizer.site,) if optimizer.site else ())),
        (
            Evidence(
                f"{share:.0%} of the model's matrices are squared and summed at one line",
                "ops",
                (0,),
                share,
                0.0,
            ),
        ),
        Fix("Leave the term out and use AdamW with weight_decay."),
    )


def _by_loss(run: Run) -> tuple[Site, float] | None:
    """A line that squares most of the matrices of the model, outside of any module."""
    shapes = Counter(
        t.shape for t in run.tensors if t.in_model and t.requires_grad and len(t.shape) >= 2
    )
    if sum(shapes.values()) < 2:
        return None
    for deep in run.deep[:3]:
        by_line: dict[Site, list[Op]] = {}
        made = {
            v.id for op in deep.ops if op.name in ("sub", "__sub__", "rsub") for v in op.outputs
        }
        for op in deep.ops:
            if op.site is None or op.name not in SQUARES or op.module or not op.inputs:
                continue
            if not op.inputs[0].requires_grad or op.inputs[0].id in made:
                continue
            if op.name == "mul" and (len(op.inputs) < 2 or op.inputs[0].id != op.inputs[1].id):
                continue
            by_line.setdefault(op.site, []).append(op)
        for site, ops in by_line.items():
            squared = Counter(op.inputs[0].shape for op in ops) & shapes
            share = sum(squared.values()) / sum(shapes.values())
            if share >= 0.8 and _enters_loss(run, deep, ops):
                return site, share
    return None


def _enters_loss(run: Run, deep: DeepStep, ops: list[Op]) -> bool:
    """The root of the backward pass depends on these; a norm that is only logged does not count."""
    values = [e.data.get("value") for e in run.of_kind("backward") if e.step == deep.step]
    reached = Flow(deep).reached({v.id for op in ops for v in op.outputs})
    ends = [
        v
        for op in deep.ops
        for v in op.outputs
        if v.shape == () and v.requires_grad and v.mean is not None
    ]
    return any(
        v.id in reached
        and isinstance(value, float)
        and v.mean is not None
        and abs(v.mean - value) <= 1e-5 * abs(value) + 1e-12
        for v in ends
        for value in values
    )
