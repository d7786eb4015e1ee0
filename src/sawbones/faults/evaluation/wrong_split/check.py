"""Validation on samples that the model was trained on

## What it sees
A 64-bit fingerprint of every sample of every batch. Fires when at least 90 % of the distinct
samples that were evaluated were also trained on by the same model, and no other evaluation reads
new samples; after the first evaluation of a trained sample. Of windows cut out of one long text:
fires when all evaluated ones lie in the stretch that training reads, and another stretch is never
read.

## Why it matters
The validation score measures memory. Overfitting is invisible, and early stopping and model
selection have nothing to go by.

## Looks like
Validation follows training to the last digit and keeps improving; the model fails on new data.

## Example
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(train_set, batch_size=64)

## Use instead
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)

## Confirm it
No experiment is needed: the samples are the same bit for bit.

## False alarms
Short windows of a text with few words coincide: samples of whole numbers that repeat within their
first round do not count. Accuracy on training batches beside a real validation set stays silent:
some evaluated samples are new. A script that evaluates the loader it trains on and has no other
data only watches its training: suspected at most. Folds of a cross-validation are told apart by
their optimizers. A batch that a teacher sees inside of a training step is not an evaluation.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L1.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Batch, Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site
from sawbones.stats.overlaps import WHOLE, judged, repeat_share
from sawbones.stats.splits import Split, by_width, forward_site, loader_site, shared, splits

NEEDS = ("batches", "validation", "steps")
EXPLAINS = ("evaluation.leak-contamination",)
EXPERIMENT = None
SHARE = WHOLE
MIN_SAMPLES = 8
MIN_WINDOWS = 200
UNREAD = 0.03  # of a text: held out, and forgotten


def check(run: Run) -> Iterator[Finding]:
    parts = splits(run)
    found = [f for part in parts if (f := _of(run, part)) is not None]
    if found and len(found) == len(parts):
        yield found[0]
        return
    from_stream = _one_stretch(run)
    if from_stream is not None:
        yield from_stream


def _of(run: Run, part: Split) -> Finding | None:
    trained_on = part.trained_on
    sources = part.sources()
    if not sources or _has_duplicates(part.trained) or _coincides(part.trained):
        return None
    counts = {source: shared(batches, trained_on) for source, batches in sources.items()}
    if any(
        judged(hit, total, 0, SHARE) != "whole" or total < MIN_SAMPLES
        for hit, total in counts.values()
    ):
        return None
    if any(
        shared([b], trained_on)[0] < 0.5 * len(b.fingerprints)
        for batches in sources.values()
        for b in batches
    ):
        return None  # one batch of new samples among them is a validation set
    hit, total = sum(h for h, _ in counts.values()), sum(t for _, t in counts.values())
    own = [s for s in sources if s not in part.trained_sources]
    unused = _unused_loaders(run)
    fewer = total < 0.6 * len(trained_on)
    sure = bool(own) or bool(unused) or fewer
    steps = tuple(sorted({b.step for b in part.evaluated})[:5])
    sites = _sites(run, own, steps)
    evidence = [
        Evidence(
            f"{hit} of {total} evaluated samples were trained on, bit for bit",
            "batches",
            steps,
            hit / total,
            0.0,
        )
    ]
    if unused:
        evidence.append(
            Evidence(f"{len(unused)} DataLoader(s) were built and never read", "loaders")
        )
    return Finding(
        "evaluation.wrong-split",
        "likely" if sure else "suspected",
        0.9 if sure else 0.4,
        "The model is validated on the samples it is trained on",
        sites,
        tuple(evidence),
        Fix(
            "Evaluate on data held out from training: give the validation loader the "
            "other part of the split."
        ),
    )


def _one_stretch(run: Run) -> Finding | None:
    """Windows of one long text: evaluations read the stretch that training reads, and the rest of
    it is never read.
    """
    rows = [
        r
        for r in (run.facts.get("evaluation") or {}).get("streams") or ()
        if r["train"]["windows"] or r["eval"]["windows"]
    ]
    both = [r for r in rows if r["eval"]["windows"]]
    if not both or any(not r["train"]["windows"] for r in both):
        return None
    row = max(both, key=lambda r: int(r["train"]["windows"]))
    train, held, size = row["train"], row["eval"], int(row["size"])
    width = size / max(train["windows"], 1)  # between neighbours among windows at random places
    unread = max(train["first"], size - 1 - train["last"])
    if train["windows"] < MIN_WINDOWS or held["windows"] < MIN_SAMPLES or len(row["steps"]) < 2:
        return None
    inside = (
        held["first"] >= train["first"] - 5 * width and held["last"] <= train["last"] + 5 * width
    )
    if not inside or not max(UNREAD * size, 10 * width) <= unread <= 0.5 * size:
        return None  # a run that stops early in a long text leaves most of it unread
    site = as_site(row.get("site"))
    text = (
        f"{held['windows']} evaluated windows lie between places {held['first']} and {held['last']} of a text, training reads "
        f"{train['first']} to {train['last']}; the other {unread} of {size} places are never read"
    )
    return Finding(
        "evaluation.wrong-split",
        "likely",
        0.9,
        "The model is validated on the stretch of text it is trained on",
        tuple(s for s in (site, forward_site(run, "eval", row["steps"])) if s is not None),
        (
            Evidence(
                text,
                "evaluation",
                tuple(row["steps"][:5]),
                float(held["last"]),
                float(train["last"]),
            ),
        ),
        Fix("Cut the windows of an evaluation out of the part that training does not read."),
    )


def _coincides(batches: tuple[Batch, ...]) -> bool:
    """Samples of whole numbers that come again before all of them have come once: windows of a text
    with few different ones.
    """
    if by_width(batches)[0]:
        return False
    prints = [f for batch in batches for f in batch.fingerprints]
    early = prints[: max(MIN_SAMPLES, len(set(prints)) // 2)]
    return repeat_share(early) > 0.05


def _has_duplicates(batches: tuple[Batch, ...]) -> bool:
    """Many samples twice in one epoch: copies made before the split would look like this too."""
    first: dict[tuple[str, int], list[int]] = {}
    for batch in batches:
        if batch.source != "model":
            first.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
    return any(
        repeat_share(prints) > 0.2 for prints in first.values() if len(prints) >= MIN_SAMPLES
    )


def _unused_loaders(run: Run) -> list[int]:
    read = {b.source for b in run.batches}
    return [
        x["index"]
        for x in run.facts.get("loaders") or ()
        if f"loader:{x['index']}" not in read and (x.get("size") or 0) > 0
    ]


def _sites(run: Run, own: list[str], steps: tuple[int, ...]) -> tuple[Site, ...]:
    places = [loader_site(run, source) for source in own]
    places += (
        [e.site for e in run.of_kind("batch") if e.step in steps and e.phase == "eval"][:1]
        if not own
        else []
    )
    places.append(forward_site(run, "eval", steps))
    return tuple(dict.fromkeys(p for p in places if p is not None))
