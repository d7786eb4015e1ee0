"""The best weights were kept without a copy, and are the last ones

## What it sees
Every call of a model's load_state_dict after the first step, and whether the tensors that it is
given are the model's own, in the same memory. Fires when all of them are. Where they are taken on
the line that loads them, nothing was kept at all: a model that should follow another one (a target
network, a teacher) is loaded from itself.

## Why it matters
state_dict() hands out the live tensors: they go on being trained. What is put back as the best
model is the last one, with whatever it has overfitted since, and so is what is saved or tested.

## Looks like
The test result is that of the last epoch, however good an earlier one was; early stopping never
helps.

## Example
    if val_loss < best:
        best, best_state = val_loss, model.state_dict()
    ...
    model.load_state_dict(best_state)

## Use instead
    if val_loss < best:
        best, best_state = val_loss, copy.deepcopy(model.state_dict())
    ...
    model.load_state_dict(best_state)

## Confirm it
Nothing is left to confirm: the same memory holds the same values.

## False alarms
Weights that come from a file, from another model or from a copy have memory of their own.

## References
The saving tutorial of PyTorch warns of it: state_dict returns a reference and not a copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run

NEEDS = ("loaded_weights",)
USES = ("states_taken",)
EXPLAINS = ("evaluation.overfitting",)
EXPERIMENT = None
KEPT = "The weights that are put back are the model's own: they were kept without a copy"
FROM_ITSELF = "A model is loaded from itself: its weights stay as they are"
COPY = Fix(
    "Keep a copy: copy.deepcopy(model.state_dict()), or "
    "{k: v.detach().clone() for k, v in model.state_dict().items()}."
)
LOAD_THE_OTHER = Fix(
    "Take the weights of the model that is to be followed: target.load_state_dict("
    "online.state_dict())."
)


def check(run: Run) -> Iterator[Finding]:
    loads = [row for row in run.loaded_weights if row.step and row.taken]
    if not loads:
        raise NothingToJudge("no weights are put into a model after its first step")
    for row in loads:
        if not row.is_own:
            continue
        saved = {e.site for e in run.of_kind("save")}
        kept = [site for site in run.states_taken if site not in saved]
        text = (
            f"all {row.taken} tensors that the model is given back after step {row.step} are its "
            "own, in the same memory: nothing changes"
        )
        at_once = row.site is not None and row.site in kept  # nothing was kept in between
        sites = (row.site,) if at_once else (*kept[-1:], row.site)
        yield finding(
            FROM_ITSELF if at_once else KEPT,
            tuple(dict.fromkeys(site for site in sites if site is not None)),
            (exact(text, row.same, signal="loaded_weights", steps=(row.step,)),),
            LOAD_THE_OTHER if at_once else COPY,
        )
        return
