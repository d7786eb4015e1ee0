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

from sawbones.evidence import exact, finding
from sawbones.schema import DeepStep, Finding, Fix, Run
from sawbones.stats.loss_calls import as_site
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import made_at

NEEDS = ("deep", "optimizers")
USES = ("made_tensors", "sharded")
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
    total = sum(int(m["trainable"]) for m in loose)
    untrained = total - sum(t.numel for t in run.tensors if not t.in_model and t.optimizer >= 0)
    if untrained <= 0:
        return
    classes = ", ".join(dict.fromkeys(str(m["class"]) for m in loose))
    sites = [as_site(m.get(name)) for name in ("built", "site") for m in loose]
    yield finding(
        f"{len(loose)} modules run that are not part of the model ({classes})",
        locate(*sites)[:3],
        (
            exact(
                f"{len(loose)} modules with {total} trainable parameters ran inside of the model "
                f"and are not in its modules(); the model itself knows {_known(run)}",
                total,
                signal="deep",
                steps=[d.step for d in steps[:5]],
            ),
        ),
        Fix(
            "Keep them in nn.ModuleList or nn.ModuleDict (or assign each as an "
            "attribute), so that the model owns them."
        ),
    )


def _known(run: Run) -> int:
    return sum(t.numel for t in run.tensors if t.in_model and t.requires_grad)


def _is_spread(run: Run) -> bool:
    """Sharded models gather whole parameters for a forward; those are tensors of their own."""
    kinds = ("parallel", "collective", "manual_step")
    return bool(run.ranks or run.sharded or run.of_kind(*kinds))


def _parameters(run: Run) -> Iterator[Finding]:
    """Parameters in a plain list: the loss depends on them, no module has them, and no optimizer
    holds them.
    """
    held = {t.shape for t in run.tensors if not t.in_model and t.optimizer >= 0}
    steps = [deep for deep in run.deep if deep.losses]
    if not steps or _is_spread(run):
        return
    shapes = set.intersection(*(_loose(deep) - held for deep in steps))
    if not shapes or _loose(run.deep[0]).issubset({t.shape for t in run.tensors}):
        return
    used = [
        op.site for op in steps[0].ops for v in op.inputs if v.requires_grad and v.shape in shapes
    ]
    shown = ", ".join(str(shape) for shape in sorted(shapes)[:4])
    yield finding(
        f"{len(shapes)} kinds of parameters are used that are not part of the model",
        locate(*made_at(run, shapes=shapes)[:2], *locate(*used)[:1]),
        (
            exact(
                f"the loss depends on parameters of shapes {shown} that are in no module and in no "
                f"optimizer; the model itself knows {_known(run)} values",
                len(shapes),
                signal="deep",
                steps=[deep.step for deep in steps[:5]],
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
