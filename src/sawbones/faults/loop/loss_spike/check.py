"""One bad batch throws the run

## What it sees
A step whose loss stands far out of the steps before (ten robust deviations and at least double),
from step 10, with the steps after it, or the end of the run, worse than those before by a good part
of the first loss. Up to three such batches, or a tenth of all where each is 100 times above the
others. A loss 100 times above all before it, or five times with a gradient twenty times above,
right after ordinary updates from ordinary gradients, comes from the batch. Where the steps after it
still improve, it is only suspected. Whether they are the cause is for the experiment, which leaves
them out.

## Why it matters
Outliers, corrupt samples and far too long sequences undo what was learnt, at every epoch anew.

## Looks like
A spike, then a slow recovery; again at the same place of the next epoch.

## Example
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

## Use instead
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

## Confirm it
The script runs again without the updates of these batches. Confirmed when the loss of the steps
after them is clearly lower.

Look at the batch and mend or leave out its bad samples: clipping the norm only bounds what
they do. A clamp of the loss is no remedy: where it acts the gradient is zero, so that the samples
it was meant for are silently ignored and nobody hears of them.

## False alarms
Losses of GANs spike without worse steps after; a spike that nothing follows from is not named. The
loss of a policy is weighed anew on every step: how high it is says nothing. A script that gives no
seed is another run each time, which decides nothing: its spikes stay suspected. Where another line
begins the backward pass, a new stage has another loss. A run that diverges from its LR has no calm
stretch before.

## References
PaLM (2022) restarted from a checkpoint and skipped some 200 batches around each spike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.divergence import gradient_leaps, recent_ratio
from sawbones.stats.drawn_losses import drawn_losses
from sawbones.stats.protocol import update_ratios
from sawbones.stats.relative import relative_difference
from sawbones.stats.series import end_level, finite, spikes, start_level
from sawbones.trace.feeding import loader_sites
from sawbones.trace.locate import locate

NEEDS = ("steps", "losses", "backward")
USES = ("source_numbers", "loaders")
EXPLAINS = ("optimizer.lr-too-high", "loop.exploding-gradients")
EXPERIMENT = "skip_batch"
EARLIEST = 10  # steps: a spike needs a calm stretch before it
MOST = 3  # spikes that are looked at one by one
APART = 5  # steps: what comes sooner is the aftermath of one spike
LATELY = 3  # steps in which momentum carries on a gradient that leapt at an ordinary loss
DEVIATIONS = 10  # robust ones: noise of any shape that losses have stays below
INTO = re.compile(r"^[^=(]*\]\s*[-+*/]?=(?!=)")  # an assignment to an element or a slice
Floats = npt.NDArray[np.float64]


def check(run: Run) -> Iterator[Finding]:
    losses = run.losses
    if len(losses) < 2 * EARLIEST or len(run.optimizers) > 1:
        raise NothingToJudge(f"fewer than {2 * EARLIEST} losses, or several optimizers")
    if drawn_losses(run):
        raise NothingToJudge("the loss weighs what was drawn anew on every step: it has no level")
    begin = start_level(losses)
    size = max(abs(begin), TINY)
    lines = {e.step: e.site for e in run.of_kind("backward") if e.site is not None}
    heads = [s for s in _heads(losses, begin) if lines.get(s) == lines.get(s - 1)]
    if not heads or (len(heads) > MOST and not _far_apart(losses, heads, begin)):
        return
    first = heads[0]
    before, after = finite(losses[max(0, first - 10) : first]), losses[first + 1 : first + 9]
    if len(before) < 5 or not len(after):
        return
    level = float(np.median(before))
    if limits.TROUBLE_BEFORE.passed_by((level - begin) / size):
        return
    # A moving average of squared gradients carries a spike for long: the end tells as well as the
    # next steps.
    worse = (
        math.inf if np.any(~np.isfinite(after)) else max(float(np.median(after)), end_level(losses))
    )
    norms = run.steps["grad_norm"]
    top = max(float(np.max(finite(losses[:first]))), size)
    usual = finite(norms[max(0, first - 20) : first - 1])
    highest = max(float(np.max(usual, initial=0)), TINY)
    bad_gradient = limits.BAD_BATCH_GRADIENT.passed_by(norms[first] / highest)
    height = losses[first] / top
    far = limits.FAR_SPIKE.passed_by(height) or not math.isfinite(losses[first])
    scale = min(size, max(abs(level), size / 10)) if far else size
    harmed = limits.SPIKE_AFTERMATH.reached_by((worse - level) / scale)
    calm = len(usual) > 3 and _out_of_the_blue(run, first, highest)
    if not harmed and not (calm and far and bad_gradient):
        return  # nothing follows from it
    from_batch = far or (limits.BAD_BATCH_LOSS.passed_by(height) and bad_gradient)
    sure = harmed and calm and math.isfinite(losses[first]) and from_batch
    backward = next((e for e in run.of_kind("backward") if e.step == first), None)
    batches = [e for e in run.of_kind("batch") if e.step == first]
    yield finding(
        f"The batch of step {first} throws the run: loss {losses[first]:.4g} after {level:.4g}",
        locate(
            *_written(run, first),
            *(s for s in loader_sites(run) if not _is_loop(run, s)),
            *locate(*batches[:1], backward),
        ),
        (
            compared(
                f"loss {losses[first]:.4g} at step {first}, {level:.4g} before it",
                float(losses[first]),
                limits.FAR_SPIKE if far else limits.BAD_BATCH_LOSS,
                against=top,
                expected=level,
                signal="losses",
                steps=(first,),
            ),
            context(
                f"the steps after are at {worse:.4g}",
                signal="losses",
                steps=(first + 1,),
                value=worse if math.isfinite(worse) else None,
                expected=level,
            ),
        ),
        Fix(
            "Look at this batch; drop or repair it, limit the length of samples, or clip "
            "the gradient."
        ),
        at_most="likely" if sure else "suspected",
        params={"steps": heads},
    )


def _heads(losses: Floats, begin: float) -> list[int]:
    """Steps that stand out and at least double. One spike's aftermath is not a second one; a ripple
    of a run that is nearly done is none.
    """
    out = [
        s
        for s in spikes(losses, window=20, factor=DEVIATIONS)
        if s >= EARLIEST and not losses[s] - begin < 0 and _doubles(losses, s)
    ]
    return [s for i, s in enumerate(out) if i == 0 or s - out[i - 1] > APART]


def _doubles(losses: Floats, step: int) -> bool:
    before = finite(losses[max(0, step - 20) : step])
    level = float(np.median(before)) if len(before) else math.nan
    risen = (losses[step] - level) / max(abs(level), TINY)
    return not math.isfinite(losses[step]) or bool(risen > 1)


def _out_of_the_blue(run: Run, first: int, highest: float) -> bool:
    """The update before was an ordinary one from an ordinary gradient."""
    norms = run.steps["grad_norm"]
    return (
        limits.CALM_GRADIENT.undercut_by(norms[first - 1] / highest)
        and limits.ORDINARY_UPDATE.undercut_by(recent_ratio(update_ratios(run), first))
        and not any(
            0 < first - leap.step <= LATELY
            for leap in gradient_leaps(norms, run.losses, limits.GRADIENT_LEAP.value)
        )
    )


def _written(run: Run, step: int) -> tuple[Site, ...]:
    """Lines that hold the number by which this batch stands out: a code for what is missing, or the
    corrupt value itself.
    """
    usual: dict[str, float] = {}
    here: dict[str, float] = {}
    for batch in (b for b in run.batches if b.phase == "train"):
        for tensor in batch.tensors:
            if "min" not in tensor or not str(tensor.get("dtype", "")).startswith("float"):
                continue
            path = str(tensor["path"])
            reach = max(abs(float(tensor["min"])), abs(float(tensor["max"])))
            if batch.step == step:
                here[path] = max(here.get(path, 0), reach)
            else:
                usual[path] = min(usual.get(path, math.inf), reach)
    odd = [
        value
        for path, value in here.items()
        if path in usual and limits.FAR_VALUE.passed_by(value / max(usual[path], TINY))
    ]
    numbers = run.source_numbers
    rows = [
        r
        for r in numbers
        if any(limits.WRITTEN_NUMBER.kept_by(relative_difference(abs(r.value), v)) for v in odd)
    ]
    # Scaled since, or not measured: the one line that writes a number far out into single elements.
    if not rows:
        rows = [
            r
            for r in numbers
            if limits.FAR_VALUE.reached_by(abs(r.value)) and INTO.search(r.site.code)
        ]
        rows = rows if len({(r.site.file, r.site.line) for r in rows}) == 1 else []
    return tuple(r.site for r in rows[:1])


def _far_apart(losses: Floats, heads: list[int], begin: float) -> bool:
    """Few steps far above all the others: corrupt samples that come by in every epoch, or a handful
    of them.
    """
    if limits.SPIKE_STEPS.passed_by(len(heads) / len(losses)):
        return False
    marked = [i for s in heads for i in range(s, min(s + 3, len(losses)))]
    usual = _ceiling(np.delete(losses, marked), begin)
    return all(limits.FAR_SPIKE.passed_by(losses[s] / usual) for s in heads) or _comes_again(
        losses[heads], _ceiling(losses[: heads[0]], begin)
    )


def _ceiling(losses: Floats, begin: float) -> float:
    return max(float(np.max(finite(losses), initial=0)), abs(begin), TINY)


def _comes_again(high: Floats, before: float) -> bool:
    """One sample in every epoch: spikes equally high, far above all that came before the first,
    whatever they leave behind.
    """
    return (
        bool(np.all(np.isfinite(high)))
        and limits.FAR_SPIKE.passed_by(high.min() / before)
        and limits.EQUAL_SPIKES.undercut_by(high.max() / high.min())
    )


def _is_loop(run: Run, site: Site) -> bool:
    """A loader built inside of a library's loop shows as the line that starts training."""
    return any(
        e.site is not None and (e.site.file, e.site.line) == (site.file, site.line)
        for e in run.of_kind("backward")[:3]
    )
