"""The best weights were kept without a copy, and are the last ones

## What it sees
Every call of a model's load_state_dict after the first step, and whether the tensors that it is
given are the model's own, in the same memory. Fires when all of them are. Where they are taken on
the line that loads them, nothing was kept at all: a model that should follow another one (a target
network, a teacher) is loaded from itself.

And what the script assigns in the branch in which it replaces its best score, and reads when that
training is over: a model, a state, or tensors in a dict or list. Fires where steps that came after
have trained the very tensors that are kept, in the same memory.

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
    # and without a module
    if val_loss < best:
        best, best_weights = val_loss, dict(weights)

## Use instead
    if val_loss < best:
        best, best_state = val_loss, copy.deepcopy(model.state_dict())
    ...
    model.load_state_dict(best_state)
    # and without a module
    if val_loss < best:
        best, best_weights = val_loss, copy.deepcopy(weights)

## Confirm it
Nothing is left to confirm: the same memory holds the same values.

## False alarms
Weights that come from a file, from another model or from a copy have memory of their own. A search
over settings that trains a new model for each keeps the best model itself: no later step trains
it. Weights that every step replaces by new tensors stay as they were. A model that is kept as a
mere name, while its weights go to a file and are loaded again after the last step, is the best one
in the end.

## References
The saving tutorial of PyTorch warns of it: state_dict returns a reference and not a copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run
from sawbones.schema.loaded import KeptWeights, Restored

NEEDS = ("kept_or_loaded",)
USES = ("states_taken", "loaded_weights")
EXPLAINS = ("evaluation.overfitting",)
EXPERIMENT = None
LIVE = "What is kept at the best score are the weights in training: they were kept without a copy"
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


COPY_TENSORS = Fix(
    "Keep a copy: copy.deepcopy(...) of what is kept, or t.detach().clone() of each tensor."
)


def check(run: Run) -> Iterator[Finding]:
    loads = [row for row in run.loaded_weights if row.step and row.taken]
    if not loads and not run.kept_weights:
        raise NothingToJudge("no weights are put into a model after its first step")
    for row in loads:
        if row.is_own:
            yield _put_back(run, row)
            return
    for kept in run.kept_weights:
        if kept.is_own and kept.is_passed and not _is_restored(run, kept):
            yield _live(kept)
            return


def _put_back(run: Run, row: Restored) -> Finding:
    saved = {e.site for e in run.of_kind("save")}
    kept = [site for site in run.states_taken if site not in saved]
    text = (
        f"all {row.taken} tensors that the model is given back after step {row.step} are its "
        "own, in the same memory: nothing changes"
    )
    at_once = row.site is not None and row.site in kept  # nothing was kept in between
    sites = (row.site,) if at_once else (*kept[-1:], row.site)
    return finding(
        FROM_ITSELF if at_once else KEPT,
        tuple(dict.fromkeys(site for site in sites if site is not None)),
        (exact(text, row.same, signal="loaded_weights", steps=(row.step,)),),
        LOAD_THE_OTHER if at_once else COPY,
    )


def _is_restored(run: Run, kept: KeptWeights) -> bool:
    """After the last step that trained it, weights from elsewhere were loaded."""
    loaded = any(row.step >= kept.until and not row.is_own for row in run.loaded_weights)
    return loaded or any(f.action == "load" and f.step >= kept.until for f in run.files)


def _live(kept: KeptWeights) -> Finding:
    count = kept.until - kept.since
    text = (
        f"{kept.same} of {kept.tensors} tensors that were kept after step {kept.since} are those "
        f"in training, in the same memory, and {count} more step{'s' * (count != 1)} changed them "
        f"before {kept.read} reads them"
    )
    reading = exact(text, kept.same, signal="kept_weights", steps=(kept.since, kept.until))
    return finding(LIVE, (kept.site, kept.read), (reading,), COPY_TENSORS)
