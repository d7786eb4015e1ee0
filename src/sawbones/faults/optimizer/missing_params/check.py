"""Trainable parameters that no optimizer holds

## What it sees
Parameters of the model that got a gradient and that neither an optimizer nor a hand-written update
ever held. Which they are decides: a part behind the trained ones (the head), or in their midst, has
been forgotten, and so have single parameters of a module whose parts are all trained; when only
whole parts before are left out, somebody may have wanted just that, unless these are look-up tables
alone, still as they were drawn, and after 40 steps the loss is hardly better than a constant
answer: likely a mistake. Elsewhere step 0 is enough.

## Why it matters
They stay at their random first values while gradients are computed for them at every step.

## Looks like
Learning is slow and stops early; a layer's weights are the same in every checkpoint.

## Example
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    loss = criterion(head(encoder(x)), y)

## Use instead
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    loss = criterion(head(encoder(x)), y)

## Confirm it
The groups of the optimizers against the parameters that the loss reaches are the proof.

## False alarms
A linear probe that hands only the head to the optimizer leaves out what comes before: mentioned at
most, and so are tables that were loaded, and any on which the rest learns. An optimizer of a sharded run holds its rank's share, and other ranks hold the rest: all ranks
are looked at, and where not all were recorded it is suspected at most. Frozen parameters, those
that an earlier phase trained, averaged and target networks (no gradient), and optimizers that own
tensors outside of any module stay silent.

## References
Layers added after the optimizer was built, and learnable losses, are the usual ways to get here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits.model import LOSS_UNMOVED
from sawbones.evidence.limits.symptoms import STEPS_TO_TELL
from sawbones.schema import NOT_MEASURED, Finding, Fix, Run, Site, Tensor
from sawbones.stats.fresh_weights import is_fresh
from sawbones.stats.protocol import turns
from sawbones.stats.series import end_level, finite
from sawbones.stats.supervised import NotSupervised, supervised
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("tensors", "optimizers", "steps", "backward", "loose_gradients")
USES = ("source_calls", "source_lines", "made_tensors", "deep", "losses")
EXPLAINS = ("model.frozen-params", "optimizer.lr-too-low")
EXPERIMENT = None
_TABLES = ("Embedding", "EmbeddingBag")


def check(run: Run) -> Iterator[Finding]:
    held = [t for t in run.tensors if t.optimizer >= 0]
    if not any(t.taken.kind == "step" for t in turns(run)) or not any(t.in_model for t in held):
        raise NothingToJudge("no optimizer that steps holds a parameter of the model")
    if not all(t.in_model for t in held):
        return  # a stale optimizer, or one that owns free tensors: another matter
    loose = set(run.loose_gradients or ())
    elsewhere = {t.name for rank in run.ranks for t in rank.tensors if t.optimizer >= 0}
    left = [
        t
        for t in run.tensors
        if t.index in loose
        and t.in_model
        and t.requires_grad
        and t.optimizer < 0
        and t.name not in elsewhere  # of a sharded optimizer every rank holds its share
        and not _ever_updated(run, t)
    ]
    if not left:
        return
    # Parameters are listed as their modules were made: input to output.
    behind = [t for t in left if t.index > held[-1].index]
    amid = [t for t in left if held[0].index < t.index < held[-1].index]
    shown = ", ".join(t.name for t in (behind or amid or left)[:3])
    front = not behind and not amid and not all(_single(t, held) for t in left)
    random_rows = all(t.owner in _TABLES and is_fresh(run, t) for t in left)
    useless = front and random_rows and _hardly_learns(run)
    unseen = len(run.ranks) + 1 < run.world_size  # ranks that may hold them
    yield finding(
        f"{len(left)} trainable parameters are in no optimizer and never change ({shown})",
        locate(*_collected(run), *run.optimizers)[:2],
        (
            exact(
                f"{len(left)} of {len(left) + len(held)} trainable tensors that the loss "
                "depends on are in no parameter group",
                len(left),
                signal="tensors",
                steps=(0,),
            ),
        ),
        Fix(
            "Hand all trainable parameters to the optimizer, and build it after the model "
            "is complete."
        ),
        # a front part may be frozen this way; random rows that nothing is learned from serve nobody
        at_most="proven" if not front and not unseen else "likely" if useless else "suspected",
    )


def _hardly_learns(run: Run) -> bool:
    try:
        task = supervised(run)
    except NotSupervised:
        return False
    if not STEPS_TO_TELL.reached_by(len(finite(task.losses))):
        return False
    gained = (task.constant - end_level(task.losses)) / task.constant
    return LOSS_UNMOVED.undercut_by(gained)


def _collected(run: Run) -> tuple[Site, ...]:
    """Where a function of its own gathers the groups, when the optimizer is built elsewhere."""
    built = {o.site.function for o in run.optimizers if o.site is not None}
    groups = [
        g for g in calls_of(run, ("group",)) if g.function not in built and g.function != "<module>"
    ]
    if len({(g.file, g.function) for g in groups}) != 1:
        return ()
    place = groups[0].file, groups[0].function
    appends = [
        r.site
        for r in run.source_lines
        if r.kind == "append" and (r.site.file, r.site.function) == place
    ]
    return locate(*appends, *groups)[:1]


def _single(tensor: Tensor, held: list[Tensor]) -> bool:
    """A parameter of its own beside submodules that are trained: a position table, a token, a
    scale.
    """
    owner = tensor.name.rpartition(".")[0]
    beside = sum(h.numel for h in held if not owner or h.name.startswith(owner + "."))
    return beside - tensor.numel > 0


def _ever_updated(run: Run, tensor: Tensor) -> bool:
    table = run.statistics.get("param_l2")
    if table is None or tensor.index >= table.shape[1]:
        return False
    return bool(np.any(table[:, tensor.index] != NOT_MEASURED))
