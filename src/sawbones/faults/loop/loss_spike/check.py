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

## Use instead
    for x, y in loader:
        loss = criterion(model(x), y).clamp(max=10.0)
        loss.backward()

## Confirm it
The script runs again without the updates of these batches. Confirmed when the loss of the steps
after them is clearly lower.

## False alarms
Losses of GANs and of reinforcement learning spike without worse steps after; a spike that nothing
follows from is not named. A run that diverges from its LR has no calm stretch before.

## References
PaLM (2022) restarted from a checkpoint and skipped some 200 batches around each spike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import loader_sites
from sawbones.stats.divergence import FAR_LOSS, FAR_NORM, gradient_leaps, recent_ratio
from sawbones.stats.loss_calls import places
from sawbones.stats.protocol import sites_of, update_ratios
from sawbones.stats.series import end_level, finite, spikes, start_level

NEEDS = ("steps", "losses", "backward")
EXPLAINS = ("optimizer.lr-too-high", "loop.exploding-gradients")
EXPERIMENT = "skip_batch"
EARLIEST, MOST, WORSE = 10, 3, 0.15
MOST_SHARE = 0.1  # of all steps, where every spike is far out
FAR, ORDINARY = 100.0, 0.05
LATELY, LEAP = (
    3,
    10.0,
)  # steps in which momentum carries on a gradient that leapt at an ordinary loss
INTO = re.compile(r"^[^=(]*\]\s*[-+*/]?=(?!=)")  # an assignment to an element or a slice


def check(run: Run) -> Iterator[Finding]:
    losses = run.losses
    if len(losses) < 2 * EARLIEST or len(run.optimizers) > 1:
        return
    begin = start_level(losses)
    high = [
        s for s in spikes(losses, window=20, factor=10.0) if s >= EARLIEST and not losses[s] < begin
    ]
    out = [s for s in high if _doubles(losses, s)]
    # One spike's aftermath is not a second one; a ripple of a run that is nearly done is none.
    heads = [s for i, s in enumerate(out) if i == 0 or s - out[i - 1] > 5]
    if not heads or (len(heads) > MOST and not _far_apart(losses, heads, begin)):
        return
    first = heads[0]
    before, after = finite(losses[max(0, first - 10) : first]), losses[first + 1 : first + 9]
    if len(before) < 5 or not len(after):
        return
    level, size = float(np.median(before)), max(abs(begin), 1e-12)
    # A moving average of squared gradients carries a spike for long: the end tells as well as the
    # next steps.
    worse = (
        math.inf if np.any(~np.isfinite(after)) else max(float(np.median(after)), end_level(losses))
    )
    top, norms = float(np.max(finite(losses[:first]))), run.steps["grad_norm"]
    usual = finite(norms[max(0, first - 20) : first - 1])
    highest = float(np.max(usual, initial=0.0))
    far = losses[first] > FAR * max(top, size) or not math.isfinite(losses[first])
    least = WORSE * min(size, max(abs(level), 0.1 * size)) if far else WORSE * size
    if level > begin + 0.5 * size:
        return  # in trouble before
    # Out of the blue: the update before was an ordinary one from an ordinary gradient.
    calm = (
        len(usual) > 3
        and norms[first - 1] < 4 * highest
        and recent_ratio(update_ratios(run), first) < ORDINARY
    )
    calm = calm and not any(
        first - LATELY <= leap.step < first for leap in gradient_leaps(norms, losses, LEAP)
    )
    both = losses[first] > FAR_LOSS * max(top, size) and norms[first] > FAR_NORM * highest
    harmed = worse >= level + least
    if not harmed and not (calm and far and norms[first] > FAR_NORM * highest):
        return  # nothing follows from it
    sure = harmed and calm and math.isfinite(losses[first]) and (far or both)
    backward = next((e for e in run.of_kind("backward") if e.step == first), None)
    batches = [e for e in run.of_kind("batch") if e.step == first]
    yield Finding(
        "loop.loss-spike",
        "likely" if sure else "suspected",
        0.9 if sure else 0.55,
        f"The batch of step {first} throws the run: loss {losses[first]:.4g} after {level:.4g}",
        places(
            *_written(run, first),
            *(s for s in loader_sites(run) if not _is_loop(run, s)),
            *sites_of(*batches[:1], backward),
        ),
        (
            Evidence(
                f"loss {losses[first]:.4g} at step {first}, {level:.4g} before it",
                "losses",
                (first,),
                float(losses[first]),
                level,
            ),
            Evidence(
                f"the steps after are at {worse:.4g}",
                "losses",
                (first + 1,),
                worse if math.isfinite(worse) else None,
                level,
            ),
        ),
        Fix(
            "Look at this batch; drop or repair it, limit the length of samples, or clip "
            "the gradient."
        ),
        params={"steps": heads},
    )


def _written(run: Run, step: int) -> tuple[Site, ...]:
    """Lines that hold the number by which this batch stands out: a code for what is missing, or the
    corrupt value itself.
    """
    usual: dict[str, float] = {}
    here: dict[str, float] = {}
    for batch in (b for b in run.batches if b.phase == "train"):
        for tensor in (
            t for t in batch.tensors if "min" in t and str(t.get("dtype", "")).startswith("float")
        ):
            path, reach = (
                str(tensor["path"]),
                max(abs(float(tensor["min"])), abs(float(tensor["max"]))),
            )
            if batch.step == step:
                here[path] = max(here.get(path, 0.0), reach)
            else:
                usual[path] = min(usual.get(path, math.inf), reach)
    odd = [
        value for path, value in here.items() if value > FAR * max(usual.get(path, math.inf), 1e-12)
    ]
    numbers = list(run.facts.get("numbers") or ())
    rows = [r for r in numbers if any(abs(abs(r["value"]) - v) <= 1e-4 * v for v in odd)]
    # scaled since, or not measured: the one line that writes a number far out into single elements
    if not rows:
        rows = [
            r for r in numbers if abs(r["value"]) >= FAR and INTO.search(str(r.get("code", "")))
        ]
        rows = rows if len({(r["file"], r["line"]) for r in rows}) == 1 else []
    return tuple(Site(str(r["file"]), int(r["line"]), "", str(r.get("code", ""))) for r in rows[:1])


def _far_apart(losses: np.ndarray, heads: list[int], begin: float) -> bool:
    """Few steps far above all the others: corrupt samples that come by in every epoch, or a handful
    of them.
    """
    others = finite(
        np.delete(losses, [i for s in heads for i in range(s, min(s + 3, len(losses)))])
    )
    usual = max(float(np.max(others, initial=0.0)), abs(begin))
    few = len(heads) <= MOST_SHARE * len(losses)
    return few and (
        all(losses[s] > FAR * usual for s in heads) or _comes_again(losses, heads, begin)
    )


def _comes_again(losses: np.ndarray, heads: list[int], begin: float) -> bool:
    """One sample in every epoch: spikes equally high, far above all that came before the first,
    whatever they leave behind.
    """
    before = max(float(np.max(finite(losses[: heads[0]]), initial=0.0)), abs(begin))
    high = losses[heads]
    return bool(
        np.all(np.isfinite(high)) and high.min() > FAR * before and high.max() < 3 * high.min()
    )


def _is_loop(run: Run, site: Site) -> bool:
    """A loader built inside of a library's loop shows as the line that starts training."""
    return any(
        e.site is not None and (e.site.file, e.site.line) == (site.file, site.line)
        for e in run.of_kind("backward")[:3]
    )


def _doubles(losses: np.ndarray, step: int) -> bool:
    before = finite(losses[max(0, step - 20) : step])
    level = float(np.median(before)) if len(before) else math.nan
    return not math.isfinite(losses[step]) or bool(losses[step] > level + max(abs(level), 1e-12))
