"""The same records on both sides of the split

## What it sees
A 64-bit fingerprint of every sample of every batch. Fires when between 2 % and 90 % of the distinct
samples of a validation source (at least five of them) were also trained on by the same model, or
more when the training set holds many copies of its own samples. Also when a quarter of the
validation samples lies five times nearer to one trained sample than to the tenth-nearest.

## Why it matters
The share of copies is answered from memory, so the validation score is too good by an unknown
amount.

## Looks like
A validation score that is higher than any published one, and falls on new data.

## Example
    train, val = data[:900], data[800:]

## Use instead
    train, val = data[:800], data[800:]

## Confirm it
No experiment is needed: the samples are the same bit for bit.

## False alarms
Short discrete samples coincide by chance: for whole numbers the share must be well above what
either part repeats within itself, or the rows must be so long and so little bound by rules that
they could hardly come about twice. Folds of a cross-validation and a second training stage are told
apart by their optimizers. Evaluation of the training loader itself is no split.

## References
Lee et al., "Deduplicating training data makes language models better" (2022).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from sawbones.schema import Batch, Evidence, Finding, Fix, Run
from sawbones.stats.data_lines import marked_lines, outside_of_models
from sawbones.stats.overlaps import judged, least_share
from sawbones.stats.splits import (
    Split,
    by_width,
    forward_site,
    loader_site,
    repeats,
    shared,
    splits,
)

NEEDS = ("batches", "validation", "steps")
EXPLAINS = ()
EXPERIMENT = None
MIN_SHARE = 0.02
MIN_COPIES = 5
NEAR = 0.25  # share of samples with a near copy


def check(run: Run) -> Iterator[Finding]:
    exact = next(_exact(run), None)
    found = exact or _near(run)
    if found is not None:
        yield found


def _near(run: Run) -> Finding | None:
    """Samples that are no copies bit for bit, but lie right beside a trained one and far from all
    others.
    """
    seen = (run.facts.get("samples") or {}).get("copies") or {}
    if (
        seen.get("near", 0.0) < max(NEAR, _by_chance(float(seen.get("middle", 0.0))) + 0.1)
        or len(splits(run)) > 1
    ):
        return None  # folds have each other's samples, scaled a little differently
    text = (
        f"{seen['near']:.0%} of {seen['evaluated']} validation samples lie five times nearer "
        "to a trained sample than to others"
    )
    halves = outside_of_models(run, marked_lines(run, "split"))
    sites = [*halves[:2], forward_site(run, "eval")]
    return Finding(
        "evaluation.leak-contamination",
        "likely",
        0.85,
        f"{seen['near']:.0%} of the validation samples are nearly trained samples",
        tuple(dict.fromkeys(s for s in sites if s is not None)),
        (Evidence(text, "samples", (), seen["near"], 0.0),),
        Fix(
            "Split first, then make copies, windows or augmented versions from the "
            "training part alone."
        ),
    )


def _by_chance(middle: float) -> float:
    """The share of near samples where none is a copy, from the median distance to the first
    neighbour in those to the tenth.

    Samples that vary in few directions have near neighbours anyway: of nine neighbours nearer than
    the tenth, at uniform density in d directions, the first is nearer than r with probability 1 -
    (1 - r**d)**9. A median near 0 is that of copies.
    """
    if not 0.1 < middle < 1.0:
        return 0.0
    directions = math.log(1 - 0.5 ** (1 / 9)) / math.log(middle)
    return float(1 - (1 - 0.2**directions) ** 9)


def _exact(run: Run) -> Iterator[Finding]:
    for part in splits(run):
        for source, batches in part.sources().items():
            if source == "model":
                batches = _partly_known(part, batches)
            elif source in part.trained_sources:
                continue
            finding = _of(run, part, source, batches) if batches else None
            if finding is not None:
                yield finding
                return


def _of(run: Run, part: Split, source: str, batches: list[Batch]) -> Finding | None:
    copies, total = shared(batches, part.trained_on)
    in_training = repeats(b for b in part.trained if b.epoch == 0)
    chance = repeats(batches) + in_training
    real, width = by_width(batches)
    many_forms = (real and width >= 3) or _rare_rows(run, copies)
    if not many_forms and width < 6:
        return None
    least = least_share(MIN_SHARE, min(1.0, chance), total, many_forms or chance == 0, times=3)
    found = judged(copies, total, MIN_COPIES, least)
    if found == "none" or (found == "whole" and in_training < 0.2):
        return None  # the whole set was trained on: another fault
    halves = outside_of_models(run, marked_lines(run, "split"))
    sites = [
        *halves[:2],
        loader_site(run, source),
        *(loader_site(run, s) for s in sorted(part.trained_sources)),
        forward_site(run, "eval"),
    ]
    evidence = [
        Evidence(
            f"{copies} of {total} distinct validation samples were trained on, bit for bit",
            "batches",
            (),
            copies / total,
            0.0,
        )
    ]
    if in_training > 0.02 and source != "model":
        evidence.append(
            Evidence(
                f"{in_training:.0%} of the samples of one training epoch are copies",
                "batches",
                (),
                in_training,
                0.0,
            )
        )
    return Finding(
        "evaluation.leak-contamination",
        "likely",
        0.9,
        f"{copies / total:.0%} of the validation samples were trained on",
        tuple(dict.fromkeys(s for s in sites if s is not None)),
        tuple(evidence),
        Fix(
            "Remove duplicates before splitting, split before oversampling or augmenting, "
            "and make the two index ranges disjoint."
        ),
    )


def _rare_rows(run: Run, copies: int) -> bool:
    """Whether rows of tokens that were met again could have come about only once, and come from no
    template.

    They must be those of this source: a score on the training rows meets all of them again.
    """
    seen = (run.facts.get("samples") or {}).get("token_copies") or {}
    if not seen or copies < 0.8 * seen["shared"]:
        return False
    return bool(
        seen["copies"] >= max(MIN_COPIES, 0.05 * seen["evaluated"]) and seen["beside"] < 0.1
    )


def _partly_known(part: Split, batches: list[Batch]) -> list[Batch]:
    """Without loaders one source feeds everything: a batch of trained samples alone is the training
    score, one of new samples alone a clean split. What is left counts only when all training
    samples were read more than once, so that it is known
    which ones they are."""
    times = Counter(f for b in part.trained for f in b.fingerprints)
    real, width = by_width(batches)
    if not real or width < 3 or sum(n == 1 for n in times.values()) > 0.1 * len(times):
        return []
    known = set(times)
    mixed = [
        b
        for b in batches
        if len(b.fingerprints) >= 16
        and 0.03 < shared([b], known)[0] / len(set(b.fingerprints)) < 0.97
    ]
    whole = [b for b in batches if len(b.fingerprints) >= 16]
    return mixed if len(mixed) >= max(2, 0.3 * len(whole)) else []
