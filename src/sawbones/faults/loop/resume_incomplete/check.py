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
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}
    torch.save(state, "last.pt")

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

from sawbones.schema import Event, Evidence, Finding, Fix, Optimizer, Run, Site
from sawbones.stats.loss_calls import as_site
from sawbones.stats.resuming import Resume, is_stateful, lr_jump, not_restored, resumes

NEEDS = ("events", "checkpoints", "optimizers", "steps")
EXPLAINS = ("loop.loss-spike", "optimizer.schedule", "loop.scheduler-order")
EXPERIMENT = "resumed_run"


def check(run: Run) -> Iterator[Finding]:
    for resume in resumes(run):
        finding = _lost(run, resume)
        if finding is not None:
            yield finding
            return
    saved = _saved_without_optimizer(run)
    if saved is not None and not run.of_kind("load"):
        optimizer = next(o for o in run.optimizers if is_stateful(o))
        yield Finding(
            "loop.resume-incomplete",
            "suspected",
            0.3,
            f"The checkpoint lacks the state of {optimizer.cls}",
            (saved.site,) if saved.site else (),
            (
                Evidence(
                    f"saved: {', '.join(saved.data.get('keys') or ())}",
                    "checkpoints",
                    (saved.step,),
                ),
            ),
            Fix(
                "Save optimizer.state_dict() (and that of the scheduler and the scaler) "
                "beside the model, and load them again."
            ),
        )


def _lost(run: Run, resume: Resume) -> Finding | None:
    missing, texts = [], []
    optimizer = not_restored(run, resume)
    if optimizer is not None:
        missing.append("optimizer")
        text = (
            f"{resume.num_before} steps lie before; {optimizer.cls} goes on empty at step "
            f"{resume.first_step}"
        )
        texts.append(Evidence(text, "checkpoints", (resume.first_step,)))
    jump = lr_jump(run, resume)
    if jump is not None:
        missing.append("scheduler" if run.of_kind("schedule") else "step")
        text = f"the LR goes from {jump[0]:.3g} to {jump[1]:.3g} at the resume"
        texts.append(Evidence(text, "steps", (resume.first_step,), jump[1], jump[0]))
    if not missing:
        return None
    losses = run.losses
    before, after = (
        losses[max(0, resume.first_step - 5) : resume.first_step],
        losses[resume.first_step : resume.first_step + 5],
    )
    if len(before) and len(after) and np.all(np.isfinite([*before, *after])):
        text = f"loss around the resume: {np.mean(before):.4g} before, {np.mean(after):.4g} after"
        texts.append(
            Evidence(
                text, "losses", (resume.first_step,), float(np.mean(after)), float(np.mean(before))
            )
        )
    lost = " and the ".join(missing)
    way = (
        f"Save the state_dict() of the {lost} beside the model, and load it before training "
        "goes on."
    )
    if missing == ["step"]:
        way = "Save the number of steps taken beside the model, and count on from it."
    return Finding(
        "loop.resume-incomplete",
        "proven",
        0.93,
        f"Training resumes without the state of the {lost}",
        _places(run, resume, missing),
        tuple(texts),
        Fix(way),
    )


def _places(run: Run, resume: Resume, missing: list[str]) -> tuple[Site, ...]:
    """Where the state is given back, when the file is opened elsewhere, or holds the state already;
    else where it is saved.
    """
    given = [
        r
        for r in run.facts.get("restored") or ()
        if r["kind"] == "model" and r["seq"] >= resume.load.seq and r.get("site")
    ]
    back = as_site(given[0]["site"]) if given else None
    saved = [e.site for e in (resume.save, resume.load) if e is not None and e.site is not None]
    elsewhere = back is not None and all(s.function != back.function for s in saved)
    kept = set(missing) <= set(resume.load.data.get("kinds") or ())
    places = [back, *saved] if elsewhere or kept else [*saved, back]
    return tuple(dict.fromkeys(p for p in places if p is not None))


def _saved_without_optimizer(run: Run) -> Event | None:
    stateful: list[Optimizer] = [o for o in run.optimizers if is_stateful(o)]
    saves = [e for e in run.of_kind("save") if "model" in (e.data.get("kinds") or ())]
    if (
        not stateful
        or not saves
        or any("optimizer" in (e.data.get("kinds") or ()) for e in run.of_kind("save"))
    ):
        return None
    return next((e for e in saves if "step" in (e.data.get("kinds") or ())), None)
