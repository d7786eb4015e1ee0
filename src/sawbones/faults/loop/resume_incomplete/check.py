"""Training that goes on from a checkpoint without the state it had

## What it sees
What torch.save was given, what torch.load gave, and which objects were given their state back.
Fires when a run trains, saves, loads and goes on with an optimizer that keeps state (momentum,
Adam) and got none back, or with a schedule that starts over: the LR jumps at the resume and the
scheduler's state was not restored, or an LR computed from a step count is the first one again.

## Why it matters
The resumed run is another run: moments start from zero, warm-up comes again or the LR is back at
its first value.

## Looks like
A jump of the loss at every restart, and results that depend on how often the job was interrupted.

## Example
    torch.save({"model": model.state_dict(), "epoch": epoch}, "last.pt")

## Use instead
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**state, "epoch": epoch, "step": step, "random": torch.get_rng_state()}, "last.pt")

## Confirm it
When the run only saves, it is started a second time in the folder it left. Confirmed when it loads
the checkpoint and goes on without the state; refuted when it never loads it, or restores
everything.

## False alarms
Loading the best weights for a last evaluation trains no further. Loading weights alone to
fine-tune, with another LR or other data, is no resume. An optimizer that lives on in memory has
lost nothing. Plain SGD keeps no state.

## References
The PyTorch tutorial "Saving and loading a general checkpoint".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.schema import Event, Evidence, Finding, Fix, Run, Site
from sawbones.stats.resuming import Resume, is_stateful, lr_jump, not_restored, resumes
from sawbones.trace.locate import locate

NEEDS = ("events", "checkpoints", "optimizers", "steps")
USES = ("restored",)
EXPLAINS = ("loop.loss-spike", "optimizer.schedule", "loop.scheduler-order")
EXPERIMENT = "resumed_run"


def check(run: Run) -> Iterator[Finding]:
    resumed = list(resumes(run))
    if not resumed and run.of_kind("load"):
        raise NothingToJudge("no training goes on from what was loaded")
    if resumed and run.restored is None:
        raise NothingToJudge("which state was put back was not recorded: only diagnose does")
    found = next((f for resume in resumed if (f := _lost(run, resume)) is not None), None)
    if found is not None:
        yield found
        return
    stateful = next((o for o in run.optimizers if is_stateful(o)), None)
    saved = _saved_without_optimizer(run)
    if stateful is not None and saved is not None and not run.of_kind("load"):
        keys = ", ".join(saved.data.get("keys") or ())
        yield finding(
            f"The checkpoint lacks the state of {stateful.cls}",
            locate(saved),
            (context(f"saved: {keys}", signal="checkpoints", steps=(saved.step,)),),
            Fix(
                "Save optimizer.state_dict() (and that of the scheduler and the scaler) "
                "beside the model, and load them again."
            ),
        )


def _lost(run: Run, resume: Resume) -> Finding | None:
    missing: list[str] = []
    evidence: list[Evidence] = []
    first = resume.first_step
    optimizer = not_restored(run, resume)
    if optimizer is not None:
        missing.append("optimizer")
        text = (
            f"{resume.num_before} steps lie before; {optimizer.cls} goes on empty at step {first}"
        )
        evidence.append(exact(text, 1, signal="checkpoints", steps=(first,)))
    jump = lr_jump(run, resume)
    if jump is not None:
        missing.append("scheduler" if run.of_kind("schedule") else "step")
        text = f"the LR goes from {jump[0]:.3g} to {jump[1]:.3g} at the resume"
        evidence.append(exact(text, jump[1], expected=jump[0], signal="steps", steps=(first,)))
    if not missing:
        return None
    before, after = run.losses[max(0, first - 5) : first], run.losses[first : first + 5]
    if len(before) and len(after) and np.all(np.isfinite([*before, *after])):
        levels = float(np.mean(before)), float(np.mean(after))
        text = f"loss around the resume: {levels[0]:.4g} before, {levels[1]:.4g} after"
        evidence.append(
            context(text, signal="losses", steps=(first,), value=levels[1], expected=levels[0])
        )
    lost = " and the ".join(missing)
    way = (
        f"Save the state_dict() of the {lost} beside the model, and load it before training "
        "goes on."
    )
    if missing == ["step"]:
        way = "Save the number of steps taken beside the model, and count on from it."
    return finding(
        f"Training resumes without the state of the {lost}",
        _places(run, resume, missing),
        evidence,
        Fix(way),
    )


def _places(run: Run, resume: Resume, missing: list[str]) -> tuple[Site, ...]:
    """Where the state is given back, when the file is opened elsewhere, or holds the state already;
    else where it is saved.
    """
    given = [
        r.site
        for r in run.restored or ()
        if r.kind == "model" and r.seq - resume.load.seq >= 0 and r.site
    ]
    back = given[0] if given else None
    saved = [e.site for e in (resume.save, resume.load) if e is not None and e.site is not None]
    elsewhere = back is not None and all(s.function != back.function for s in saved)
    kept = set(missing).issubset(resume.load.data.get("kinds") or ())
    return locate(back, *saved) if elsewhere or kept else locate(*saved, back)


def _saved_without_optimizer(run: Run) -> Event | None:
    """A checkpoint with weights and a step count, in a run that saves no optimizer anywhere."""
    saves = [(e, e.data.get("kinds") or ()) for e in run.of_kind("save")]
    if any("optimizer" in kinds for _, kinds in saves):
        return None
    return next((e for e, kinds in saves if "model" in kinds and "step" in kinds), None)
