"""Layers that run inside of a model without being part of it

## What it sees
On deep steps, modules with parameters that ran inside of a model's forward and are not among its
modules: kept in a plain list, dict or tuple. The same for single parameters that belong to no
module. Fires from step 0 when the loss depends on their trainable parameters and no optimizer holds
them.

## Why it matters
parameters() does not find them, so they are never trained; to() does not move them and state_dict()
does not save them.

## Looks like
The model learns less than it should; on a GPU there is a device error; a loaded checkpoint behaves
like an untrained model.

## Example
    self.blocks = [Block(width) for _ in range(depth)]

## Use instead
    self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

## Confirm it
The modules that ran against the modules that the model knows are the proof.

## False alarms
A frozen network that is kept out of the model on purpose (a perceptual loss, a teacher) has no
trainable parameters or runs without gradients. Two models that call each other are both known.
Parameters that were handed to an optimizer by themselves are trained.

## References
The PyTorch documentation of ModuleList exists for this reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Run
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("deep", "optimizers")
EXPLAINS = (
    "optimizer.missing-params",
    "model.frozen-params",
    "model.detached-graph",
    "optimizer.stale-params",
    "optimizer.lr-too-low",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    steps = [deep for deep in run.deep if deep.unregistered]
    if not steps:
        yield from _parameters(run)
        return
    loose = [m for m in steps[0].unregistered if m.get("reached") and (m.get("trainable") or 0) > 0]
    held = sum(t.numel for t in run.tensors if not t.in_model and t.optimizer >= 0)
    total = sum(int(m["trainable"]) for m in loose)
    if not loose or held >= total:
        return
    classes = ", ".join(dict.fromkeys(str(m["class"]) for m in loose))
    sites = [as_site(m.get("built")) for m in loose] + [as_site(m.get("site")) for m in loose]
    known = sum(t.numel for t in run.tensors if t.in_model and t.requires_grad)
    yield Finding(
        "model.unregistered-module",
        "proven",
        0.98,
        f"{len(loose)} modules run that are not part of the model ({classes})",
        places(*sites)[:3],
        (
            Evidence(
                f"{len(loose)} modules with {total} trainable parameters ran inside of the model and are not in its modules(); the "
                f"model itself knows {known}",
                "deep",
                tuple(d.step for d in steps[:5]),
                float(total),
                0.0,
            ),
        ),
        Fix(
            "Keep them in nn.ModuleList or nn.ModuleDict (or assign each as an "
            "attribute), so that the model owns them."
        ),
    )


def _parameters(run: Run) -> Iterator[Finding]:
    """Parameters in a plain list: the loss depends on them, no module has them, and no optimizer
    holds them.
    """
    held = {t.shape for t in run.tensors if not t.in_model and t.optimizer >= 0}
    steps = [(deep, _loose(deep) - held) for deep in run.deep if deep.losses]
    # Sharded models gather whole parameters for a forward; those are tensors of their own.
    spread = (
        run.ranks
        or run.facts.get("sharded")
        or run.of_kind("parallel")
        or run.of_kind("collective")
    )
    apart = (
        spread
        or run.of_kind("manual_step")
        or _loose(run.deep[0]) <= {t.shape for t in run.tensors}
    )
    if not steps or not all(shapes for _, shapes in steps) or apart:
        return
    shapes = set.intersection(*[found for _, found in steps])
    if not shapes:
        return
    known = sum(t.numel for t in run.tensors if t.in_model and t.requires_grad)
    made = [
        site
        for row in run.facts.get("data_ops") or ()
        if tuple(row.get("shape") or ()) in shapes and (site := as_site(row.get("site")))
    ]
    used = [
        op.site
        for op in steps[0][0].ops
        for v in op.inputs
        if v.requires_grad and v.shape in shapes and op.site is not None
    ]
    shown = ", ".join(str(shape) for shape in sorted(shapes)[:4])
    yield Finding(
        "model.unregistered-module",
        "proven",
        0.95,
        f"{len(shapes)} kinds of parameters are used that are not part of the model",
        places(*made[:2], *used[:1]),
        (
            Evidence(
                f"the loss depends on parameters of shapes {shown} that are in no module and in no optimizer; the model itself "
                f"knows {known} values",
                "deep",
                tuple(deep.step for deep, _ in steps[:5]),
                float(len(shapes)),
                0.0,
            ),
        ),
        Fix(
            "Keep them in nn.ParameterList or nn.ParameterDict (or assign each as an "
            "attribute), so that the model owns them."
        ),
    )


def _loose(deep: DeepStep) -> set[tuple[int, ...]]:
    return {
        tuple(leaf["shape"])
        for leaf in deep.probes.get("loose_leaves") or ()
        if leaf.get("is_parameter")
    }
