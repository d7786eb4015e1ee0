"""A model that memorises: training falls while validation rises

## What it sees
The mean validation loss of every evaluation, by the loss function that training uses. Fires when it
ends at least 1.4 times its best, the best lies in the first 60 % of at least six evaluations, it
rises steadily from there, and the training loss at the end is less than 60 % of what it was at the
best evaluation. Where that has fallen below 5 %, a rise by 4 % is enough; where it has fallen below
20 % and is under a tenth of the validation loss, a rise by 10 % that goes on for four evaluations.
Without such a loss, an error that the evaluation computes by hand (outputs less targets) is read
instead. The splits must be clean.

## Why it matters
From the best evaluation on, every step makes the model worse on new data.

## Looks like
A training loss close to zero and a validation loss that has turned around long ago.

## Example
    model = torch.nn.Sequential(torch.nn.Linear(20, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(200):
        train(model, optimizer, fifty_samples)

## Use instead
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    for epoch in range(200):
        train(model, optimizer, fifty_samples)
        if stopper.should_stop(evaluate(model)):
            break

## Confirm it
No experiment: the two curves are the definition. Other faults bring the same picture about, and
stand before this one.

## False alarms
A short rise at the end, noise of a small validation set, and a gap that stays constant are normal.
A training loss that rises as well is divergence, not memory.

## References
Prechelt, "Early stopping - but when?" (1998).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import error_curve, fresh_batches, validation_curve
from sawbones.stats.splits import shared, splits

NEEDS = ("events", "validation", "losses")
EXPLAINS = ()
EXPERIMENT = None
MIN_EVALUATIONS = 6
RATIO = 1.4
BY_HEART, HARDLY = (
    0.05,
    1.04,
)  # a training loss that falls so far shows memorising when validation rises by little
MOSTLY, APART, SOMEWHAT = (
    0.2,
    0.1,
    1.1,
)  # of then, of the validation loss; the rise that is enough when it never turns back


def check(run: Run) -> Iterator[Finding]:
    steps, values, site = validation_curve(run)
    same = len(values) > 0  # the training loss itself; else an error in a unit of its own
    if not same:
        steps, values, site = error_curve(run)
    if len(values) < MIN_EVALUATIONS or not np.all(np.isfinite(values)) or values.min() < 0:
        return
    best = int(np.argmin(values))
    last = float(np.median(values[-2:]))
    then, end = _train_level(run, int(steps[best])), _train_level(run, int(steps[-1]))
    if (
        not (np.isfinite(then) and np.isfinite(end))
        or end > 0.6 * then
        or (same and end > 0.6 * last)
    ):
        return
    by_heart = end < BY_HEART * then and (not same or end < BY_HEART * last)
    rises = np.diff(values[best:])
    mostly = (
        same
        and end < MOSTLY * then
        and end < APART * last
        and len(rises) >= 4
        and np.sum(rises > 0) >= 0.8 * len(rises)
    )
    least = HARDLY if by_heart else SOMEWHAT if mostly else RATIO
    if (
        best > 0.6 * (len(values) - 1)
        or last < least * float(values[best])
        or (last - values[best] < 0.05 and not by_heart)
    ):
        return
    if np.sum(rises > 0) < 0.65 * len(rises):
        return
    for part in splits(run):
        for batches in part.sources().values():
            hit, total = shared(batches, part.trained_on)
            if hit > 0.05 * total and not _two_parts(run):
                return
    places = (
        *_settings(run),
        *((site,) if site else ()),
        *(o.site for o in run.optimizers if o.site is not None),
    )
    yield Finding(
        "evaluation.overfitting",
        "likely",
        0.7,
        "The model memorises: the validation loss rises while the training loss falls",
        places[:4],
        (
            Evidence(
                (
                    f"validation loss is best ({values[best]:.3g}) at step {steps[best]} and "
                    f"ends at {last:.3g}"
                ),
                "events",
                (int(steps[best]), int(steps[-1])),
                last,
                float(values[best]),
            ),
            Evidence(
                f"training loss falls from {then:.3g} to {end:.3g} in the same time",
                "losses",
                (),
                end,
                then,
            ),
        ),
        Fix(
            f"Stop at the best validation loss (step {steps[best]}), use a smaller model, "
            "regularise it, or add data."
        ),
    )


def _two_parts(run: Run) -> bool:
    """Every evaluation goes over batches of training and over others, one after the other."""
    marks = fresh_batches(run).values()
    return all(None not in m and any(m) and not all(m) for m in marks)


def _train_level(run: Run, step: int) -> float:
    losses = run.losses[max(0, step - 10) : max(1, step)]
    losses = losses[np.isfinite(losses)]
    return float(np.median(losses)) if len(losses) else float("nan")


def _settings(run: Run) -> tuple[Site, ...]:
    """Numbers that decide how long is trained on how much: the size of the training set, and the
    patience of an early stop.
    """
    samples = len({f for part in splits(run) for f in part.trained_on})
    rows = [r for r in run.facts.get("numbers") or () if r.get("name")]
    patience = [r for r in rows if "patience" in str(r["name"]).lower()]
    sizes = [r for r in rows if samples >= 8 and r["value"] == samples]
    near = [
        r
        for r in rows
        if samples >= 8 and r["value"] > samples and 0.5 <= samples / r["value"] < 1.0
    ]  # a part is held out
    return tuple(
        Site(str(r["file"]), int(r["line"]), "", str(r.get("code", "")))
        for r in (patience or sizes or near)[:1]
    )
