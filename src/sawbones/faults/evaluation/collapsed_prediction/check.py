"""One class predicted for everything

## What it sees
The predictions that are compared with targets in evaluations, or the largest output of every
evaluated sample. Fires when the last two evaluations give one class for at least 99 % of 30 or more
samples, although no class makes up more than 80 % of the targets.

## Why it matters
The score equals that of a constant. Nothing about the input is used.

## Looks like
Accuracy stands exactly at the share of one class and does not move.

## Example
    logits = model(x)
    probabilities = torch.softmax(logits * 0.0, dim=1)
    loss = criterion(probabilities, y)

## Use instead
    logits = model(x)
    loss = criterion(logits, y)

## Confirm it
No experiment: predictions and targets are counted. The cause is often another fault, which then
stands before this one.

## False alarms
A model before it has learnt anything: at least 20 steps and two evaluations must have passed. Rare
positives: a class that makes up more than 80 % of the targets may well be predicted everywhere.

## References
The "majority class classifier" of imbalanced learning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import EQUALS, nodes, passes
from sawbones.stats.loss_calls import as_site
from sawbones.stats.splits import forward_site, label_counts, told_apart

NEEDS = ("steps", "validation", "evaluation")
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 20
MIN_SAMPLES = 30
MOST = 0.8
FADED = 4.6  # the sum of LR times decay that leaves a hundredth of a weight: exp(-4.6)


def check(run: Run) -> Iterator[Finding]:
    if run.num_steps < MIN_STEPS:
        return
    found = _by_argmax(run) or _by_comparison(run)
    if found is None:
        return
    text, site = found
    lost = [*_decayed(run), *_lost_at(run)]
    places = tuple(
        dict.fromkeys(s for s in (*lost, site, *(o.site for o in run.optimizers)) if s is not None)
    )
    yield Finding(
        "evaluation.collapsed-prediction",
        "likely",
        0.55,
        "One class is predicted for everything",
        places,
        (Evidence(text, "evaluation"),),
        Fix(
            "Look at what the last layer gets: its inputs, its initial weights, the loss, "
            "the class weights and the LR."
        ),
    )


def _by_argmax(run: Run) -> tuple[str, Site | None] | None:
    late = [p for p in passes(run) if p["step"] >= MIN_STEPS][-2:]
    if len(late) < 2:
        return None
    _, evaluated = told_apart(run)
    compared = next(
        (
            n.target_counts
            for n in nodes(run)
            if n.op in EQUALS and n.roles[0] == "output" and n.target_counts
        ),
        {},
    )
    texts = []
    for entry in late:
        kinds = {k: v for k, v in entry["predictions"].items() if k.startswith("argmax")}
        targets = label_counts(b for b in evaluated if b.step == entry["step"]) or compared
        if len(kinds) != 1 or not targets:
            return None
        counts: Mapping[str, int] = next(iter(kinds.values()))
        total, largest = sum(counts.values()), max(counts.values())
        most = max(targets.values()) / sum(targets.values())
        if (
            total < MIN_SAMPLES
            or largest < 0.99 * total
            or most > MOST
            or sum(targets.values()) < MIN_SAMPLES
        ):
            return None
        which = max(counts, key=lambda c: counts[c])
        texts.append(
            f"class {which} for {largest} of {total} samples at step {entry['step']}, "
            f"while no class has more than {most:.0%}"
        )
    return "; ".join(texts), forward_site(run, "eval")


def _by_comparison(run: Run) -> tuple[str, Site | None] | None:
    for node in nodes(run):
        if (
            node.op not in EQUALS
            or len(node.given) != 2
            or len([s for s in node.steps if s >= MIN_STEPS]) < 2
        ):
            continue
        if node.roles[0] != "output" or any("min" not in g for g in node.given):
            continue
        predicted, target = node.given
        binary = target["min"] == 0 and target["max"] == 1 and 1 - MOST <= target["mean"] <= MOST
        if binary and predicted["min"] == predicted["max"] and predicted["num"] >= 2 * MIN_SAMPLES:
            share = f"{target['mean']:.0%} of the targets are 1"
            return (
                f"{predicted['num']} predictions are all {predicted['max']:g}, while {share}",
                node.site,
            )
    return None


def _decayed(run: Run) -> list[Site]:
    """Where a weight decay is set that alone takes the weights to a hundredth within the run:
    nothing can be learnt against it.
    """
    rates = run.steps["lr"][np.isfinite(run.steps["lr"])]
    groups = [
        g
        for o in run.optimizers
        for g in (*o.groups, o.defaults)
        if isinstance(g.get("weight_decay"), (int, float))
    ]
    strongest = max((float(g["weight_decay"]) for g in groups), default=0.0)
    kept = max(
        (float(g.get("momentum") or 0.0) for g in groups), default=0.0
    )  # momentum repeats what the decay takes
    if strongest * float(rates.sum()) / max(1.0 - kept, 0.01) < FADED:
        return []
    rows = [
        r
        for r in run.facts.get("numbers") or ()
        if r.get("name") and r["value"] == strongest and "decay" in str(r["code"])
    ]
    set_at = [Site(str(r["file"]), int(r["line"]), "", str(r.get("code", ""))) for r in rows[:1]]
    return [*set_at, *(o.site for o in run.optimizers if o.site is not None)][:2]


def _lost_at(run: Run) -> list[Site]:
    """Where the samples become alike: the operator whose result no longer depends on them, and the
    norm that stands before it.
    """
    rows = (run.facts.get("evaluation") or {}).get("constant") or ()
    if not rows:
        return []
    last = rows[-1]
    norms = {m.cls for m in run.modules if _same_name(m.cls, str(last.get("after", "")))}
    built = [as_site(row["site"]) for row in run.facts.get("data_ops") or () if row.get("site")]
    named = [s for s in built if s is not None and any(f"{cls}(" in s.code for cls in norms)]
    return [s for s in (as_site(last.get("site")), *named[-1:]) if s is not None]


def _same_name(cls: str, op: str) -> bool:
    plain = op.replace("_", "")
    return "norm" in plain and cls.lower().startswith(plain)
