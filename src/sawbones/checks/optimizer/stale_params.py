"""An optimizer that holds tensors which are no longer the model's

## What it sees
Tensors in an optimizer that belong to no module that ran and never got a gradient, while parameters of the model that did get one
are in no optimizer. Both together say that the model was swapped, rebuilt or extended after the optimizer was made. Step 0.

## Why it matters
The steps move tensors that nobody uses; the new ones never learn.

## Looks like
The loss does not move, or only part of the model learns; a freshly replaced head stays random.

## Example
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.fc = torch.nn.Linear(512, 10)

## Use instead
    model.fc = torch.nn.Linear(512, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

## Confirm it
The identity of the tensors is the proof: the optimizer's are not in the model, the model's are not in the optimizer.

## False alarms
Free tensors that are optimised on purpose (latent codes, a learnt temperature) get gradients.
Linear probes leave no orphans. Parameters of a module that did not
run yet are only unused when the model's own parameters are left out at the same time.

## References
torch's notes on optimizers: build them after the model is moved and complete.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import NO_GRADIENT, NOT_MEASURED, Evidence, Finding, Fix, Run, Tensor

NEEDS = ("tensors", "optimizers", "backward")
EXPLAINS = (
    "optimizer.missing-params", "model.frozen-params", "optimizer.lr-too-low", "data.labels-misaligned", "loop.no-step",
    "evaluation.collapsed-prediction", "loop.no-zero-grad", "loop.zero-grad-misplaced",
)  # fmt: skip
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    got = set(run.facts.get("loose_gradients", ()))
    orphans = [t for t in run.tensors if t.optimizer >= 0 and not t.in_model and not _got_gradient(run, t)]
    loose = [t for t in run.tensors if t.in_model and t.requires_grad and t.optimizer < 0 and t.index in got]
    if not orphans or not loose or (len(orphans) < 2 and not any(_alike(o, t) for o in orphans for t in loose)):
        return
    optimizer = next((o for o in run.optimizers if o.index == orphans[0].optimizer), None)
    owners = {t.name.rpartition(".")[0] for t in loose}
    built = [m.built for m in run.modules if m.path in owners and m.built is not None]
    after = [b for b in built if optimizer and optimizer.site and b.file == optimizer.site.file]
    sites = tuple(dict.fromkeys([*([optimizer.site] if optimizer and optimizer.site else []), *after[:1]]))
    shown = ", ".join(t.name for t in loose[:3])
    yield Finding(
        "optimizer.stale-params",
        "proven",
        0.96,
        f"The optimizer holds {len(orphans)} tensors that are no longer the model's; {shown} never change",
        sites,
        (
            Evidence(
                f"{len(orphans)} tensors of the optimizer are in no model that ran and get no gradient",
                "tensors",
                (0,),
                float(len(orphans)),
                0.0,
            ),
            Evidence(
                f"{len(loose)} trainable tensors of the model are in no optimizer ({shown})",
                "tensors",
                (0,),
                float(len(loose)),
                0.0,
            ),
        ),
        Fix("Build the optimizer after the model has its final modules."),
    )


def _alike(old: Tensor, new: Tensor) -> bool:
    """The same shape, or one that was made wider or longer in one dimension."""
    same = sum(a == b for a, b in zip(old.shape, new.shape, strict=False))
    return len(old.shape) == len(new.shape) and same >= len(old.shape) - 1 and (len(old.shape) > 1 or old.shape == new.shape)


def _got_gradient(run: Run, tensor: Tensor) -> bool:
    """Under the optimizer that holds it now: an earlier phase may have trained it."""
    table = run.statistics.get("grad_l2")
    if table is None or tensor.index >= table.shape[1]:
        return False
    mine = run.steps["step"][run.steps["optimizer"] == tensor.optimizer]
    column = table[np.isin(run.tensor_steps, mine), tensor.index]
    return bool(np.any((column != NOT_MEASURED) & (column != NO_GRADIENT) & (column != 0)))
