"""An optimizer that holds tensors which are no longer the model's

## What it sees
Tensors in an optimizer that belong to no module that ran and never got a gradient, while parameters
of the model that did get one are in no optimizer. Both together say that the model was swapped,
rebuilt or extended after the optimizer was made. Step 0. Later: an optimizer that had gradients
finds none at any of its last steps (ten or more, a fifth of the run) and goes on stepping, while a
model of the same shapes gets them.

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
The identity of the tensors is the proof: the optimizer's are not in the model, the model's are not
in the optimizer.

## False alarms
Free tensors that are optimised on purpose (latent codes, a learnt temperature) get gradients.
Linear probes leave no orphans. Parameters of a module that did not run yet are only unused when the
model's own parameters are left out as well. An optimizer of an earlier phase steps no more.

## References
torch's notes on optimizers: build them after the model is moved and complete.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import optimizer as limits
from sawbones.schema import NO_GRADIENT, NOT_MEASURED, Finding, Fix, Optimizer, Run, Tensor
from sawbones.stats.protocol import measured
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("tensors", "optimizers", "backward", "loose_gradients")
USES = ("source_calls",)
EXPLAINS = (
    "optimizer.missing-params",
    "model.frozen-params",
    "optimizer.lr-too-low",
    "data.labels-misaligned",
    "loop.no-step",
    "evaluation.collapsed-prediction",
    "loop.no-zero-grad",
    "loop.zero-grad-misplaced",
)
EXPERIMENT = None
MIN_DESERTED = 10  # steps without a gradient: fewer are the last of a phase


def check(run: Run) -> Iterator[Finding]:
    held = [t for t in run.tensors if t.optimizer >= 0]
    if not held:
        raise NothingToJudge("no optimizer holds a parameter")
    got = set(run.loose_gradients or ())
    orphans = [t for t in held if not t.in_model and not _got_gradient(run, t)]
    loose = [
        t
        for t in run.tensors
        if t.in_model and t.requires_grad and t.optimizer < 0 and t.index in got
    ]
    if not orphans:
        yield from _swapped(run, loose)
        return
    if not loose or (len(orphans) < 2 and not any(_replaces(t, orphans[0]) for t in loose)):
        return
    optimizer = next((o for o in run.optimizers if o.index == orphans[0].optimizer), None)
    made = optimizer.site if optimizer is not None else None
    owners = {t.name.rpartition(".")[0] for t in loose}
    built = [m.built for m in run.modules if m.path in owners and m.built is not None]
    after = [b for b in built if made is not None and b.file == made.file]
    shown = ", ".join(t.name for t in loose[:3])
    yield finding(
        f"The optimizer holds {len(orphans)} tensors that are no longer the model's; "
        f"{shown} never change",
        locate(made, *after[:1]),
        (
            exact(
                f"{len(orphans)} tensors of the optimizer are in no model that ran and "
                "get no gradient",
                len(orphans),
                signal="tensors",
                steps=(0,),
            ),
            exact(
                f"{len(loose)} trainable tensors of the model are in no optimizer ({shown})",
                len(loose),
                signal="tensors",
                steps=(0,),
            ),
        ),
        Fix("Build the optimizer after the model has its final modules."),
    )


def _deserted(run: Run) -> tuple[Optimizer, int, int] | None:
    """(optimizer, its first step without any gradient, how many since) of one that had gradients
    and goes on stepping with none.
    """
    for optimizer in run.optimizers:
        rows = run.steps["optimizer"] == optimizer.index
        steps, norms = run.steps["step"][rows], run.steps["grad_norm"][rows]
        had = np.flatnonzero(norms > 0)
        if not len(had):
            continue
        gone = norms[had[-1] + 1 :]
        long = limits.DESERTED_STEPS.reached_by(len(gone) / len(norms))
        if (
            long
            and len(gone) >= MIN_DESERTED
            and np.all(np.isnan(gone))
            and _none_left(run, optimizer, int(steps[-1]))
        ):
            return optimizer, int(steps[had[-1] + 1]), len(gone)
    return None


def _none_left(run: Run, optimizer: Optimizer, step: int) -> bool:
    """At its last step every tensor was looked at and had no gradient."""
    values = measured(run, "grad_l2", step)
    mine = [
        values[t.index]
        for t in run.tensors
        if t.optimizer == optimizer.index and t.index < len(values)
    ]
    return bool(mine) and all(v == NO_GRADIENT for v in mine)


def _swapped(run: Run, loose: list[Tensor]) -> Iterator[Finding]:
    deserted = _deserted(run)
    if deserted is None:
        return
    optimizer, first, steps = deserted
    held = [t for t in run.tensors if t.optimizer == optimizer.index]
    if not {t.shape for t in held}.issubset(t.shape for t in loose):
        return
    copies = [
        c
        for c in calls_of(run, ("copy",))
        if optimizer.site is None or c.line > optimizer.site.line
    ]
    forward = next(
        (e for e in run.of_kind("forward") if e.step >= first and e.phase == "train"), None
    )
    yield finding(
        f"From step {first} on the model is another one than the optimizer's: {steps} "
        "steps find no gradient at all",
        locate(*copies[-1:], *locate(forward), optimizer),
        (
            exact(
                f"all {len(held)} tensors of {optimizer.cls} have gradients before step "
                f"{first}, none at the {steps} steps since; "
                f"{len(loose)} tensors of the same shapes in the model get gradients and "
                "are in no optimizer",
                steps,
                signal="tensor_statistics",
                steps=(first,),
            ),
        ),
        Fix(
            "Load the values into the model that the optimizer holds (load_state_dict), "
            "or build the optimizer anew."
        ),
    )


def _replaces(new: Tensor, old: Tensor) -> bool:
    """The same shape, or one that was made wider or longer in one dimension."""
    if len(old.shape) != len(new.shape) or len(old.shape) < 2:
        return old.shape == new.shape
    return sum(a != b for a, b in zip(old.shape, new.shape, strict=True)) <= 1


def _got_gradient(run: Run, tensor: Tensor) -> bool:
    """Under the optimizer that holds it now: an earlier phase may have trained it."""
    table = run.statistics.get("grad_l2")
    if table is None or tensor.index >= table.shape[1]:
        return False
    mine = run.steps["step"][run.steps["optimizer"] == tensor.optimizer]
    column = table[np.isin(run.tensor_steps, mine), tensor.index]
    return bool(np.any((column != NOT_MEASURED) & (column != NO_GRADIENT) & (column != 0)))
