"""Batches that are mostly padding

## What it sees
The lengths of all token rows of up to 60 batches, the width they are padded to, and what rows
grouped by length would need. Fires when more than 60 % of all positions are padding and padding
each batch to its own longest row, or grouping rows by length, would save at least half of all
positions.

## Why it matters
The time and memory of a step grow with the padded width; most of it is spent on positions that
nobody reads.

## Looks like
Slow steps, short texts, memory that runs out at batch sizes that should fit.

## Example
    ids = [row + [PAD] * (512 - len(row)) for row in rows]

## Use instead
    width = max(map(len, rows))
    ids = [row + [PAD] * (width - len(row)) for row in rows]

## Confirm it
Nothing is left to confirm: positions are counted.

## False alarms
Shares up to 60 % are usual for mixed lengths. Fixed shapes that a compiler or an accelerator wants
cost the same; they are reported all the same when most of them is padding. Batches of fewer than
four rows and runs with few tokens are left alone.

## References
padding="max_length" left over from a tutorial; batches drawn at random from lengths that span two
orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import (
    feeding_sites,
    loader_sites,
    marked_lines,
    outside_of_models,
    sample_rows,
    training_loader,
)
from sawbones.stats.failures import numbers_equal
from sawbones.stats.loss_calls import places
from sawbones.stats.protocol import sites_in

NEEDS = ("deep",)
EXPLAINS = ()
EXPERIMENT = None
WASTED = 0.6
ITS_OWN = ("RandomSampler", "SequentialSampler", "SubsetRandomSampler")


def check(run: Run) -> Iterator[Finding]:
    rows = sample_rows(run)
    if rows is None or rows.get("pad_id") is None or rows["batches"] < 8 or min(rows["sizes"]) < 2:
        return
    size = sorted(rows["sizes"])[len(rows["sizes"]) // 2]
    lengths, widths = rows["lengths"], rows["widths"]
    if len(lengths) != sum(rows["sizes"]) or size < 4:
        return
    positions = sum(w * n for w, n in zip(widths, rows["sizes"], strict=True))
    real = sum(lengths)
    wasted = 1.0 - real / positions
    own, start = 0, 0
    for n in rows["sizes"]:
        own += n * max(lengths[start : start + n])
        start += n
    ordered = sorted(lengths)
    grouped = sum(
        len(part) * max(part)
        for part in (ordered[i : i + size] for i in range(0, len(ordered), size))
    )
    if wasted < WASTED or min(own, grouped) > 0.5 * positions:
        return
    tight = own <= 0.6 * positions
    pads = outside_of_models(run, marked_lines(run, "pad"))
    samplers = list(loader_sites(run)[:1])
    collate = loader_sites(run)[1:]
    near = [
        s
        for s in pads
        if any(c.file == s.file and c.line <= s.line <= c.line + 15 for c in collate)
    ] or list(pads[:1])
    orders = _ordering(run)
    fixed = numbers_equal(run, float(widths[0])) if tight and len(set(widths)) == 1 else []
    by_hand = () if samplers else feeding_sites(run)[:1]
    yield Finding(
        "pipeline.padding-waste",
        "likely",
        0.85,
        f"{wasted:.0%} of all token positions are padding",
        places(
            *(near[:1] if tight else orders[:1] or samplers),
            *fixed[:1],
            *by_hand,
            *near[:2],
            *samplers,
            *collate,
            *feeding_sites(run),
        )[:4],
        (
            Evidence(
                f"{real} real tokens in {positions} positions of {rows['batches']} batches",
                "samples",
                value=wasted,
                expected=0.3,
            ),
            Evidence(
                (
                    f"padded to the longest row of each batch: {own} positions; grouped by "
                    f"length: {grouped}"
                ),
                "samples",
                value=min(own, grouped) / positions,
            ),
        ),
        Fix(
            "Pad each batch to its own longest row."
            if tight
            else "Draw batches from rows of about the same length (bucketing)."
        ),
    )


def _ordering(run: Run) -> list[Site]:
    """Lines of the script's own sampler that order the rows; none where the loader draws with those
    of PyTorch.
    """
    loader = training_loader(run)
    if (
        loader is not None
        and loader.get("batch_sampler") == "BatchSampler"
        and loader.get("sampler") in ITS_OWN
    ):
        return []
    return [
        s
        for s in sites_in(run, ("order",))
        if s.function in ("__iter__", "__call__", "sampler", "batches")
    ]
