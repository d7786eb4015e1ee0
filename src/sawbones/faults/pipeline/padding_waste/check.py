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
four rows are left alone, and so are batches of fewer than 2,048 positions that are already padded to
their own longest row: grouping them would save nothing that is felt.

## References
padding="max_length" left over from a tutorial; batches drawn at random from lengths that span two
orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, counted, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.samples import Samples
from sawbones.trace.feeding import feeding_sites, inside_collate, loader_sites, training_loader
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import (
    calls_of,
    data_lines,
    numbers_equal,
)

NEEDS = ("deep", "samples")
USES = ("loaders", "source_lines", "source_numbers", "source_calls")
EXPLAINS = ()
EXPERIMENT = None
MIN_BATCHES = 8  # so that the lengths stand for those of the data
MIN_ROWS = 2  # of every batch: one row needs no padding
MIN_BATCH_SIZE = 4  # in the middle; smaller batches have little to group
OF_PYTORCH = ("RandomSampler", "SequentialSampler", "SubsetRandomSampler")


def check(run: Run) -> Iterator[Finding]:
    rows = (run.samples or Samples()).rows
    if (
        rows is None
        or rows.pad_id is None
        or rows.batches < MIN_BATCHES
        or min(rows.sizes) < MIN_ROWS
        or len(rows.lengths) != sum(rows.sizes)
    ):
        raise NothingToJudge(f"no {MIN_BATCHES} batches of padded token rows")
    sizes, lengths, widths = rows.sizes, rows.lengths, rows.widths
    size = sorted(sizes)[len(sizes) // 2]
    if size < MIN_BATCH_SIZE:
        return
    positions, real = sum(w * n for w, n in zip(widths, sizes, strict=True)), sum(lengths)
    own = _padded(lengths, sizes)
    grouped = _padded(sorted(lengths), [size] * -(-len(lengths) // size))
    needed = min(own, grouped) / positions
    if not limits.WASTED_POSITIONS.reached_by(
        1 - real / positions
    ) or not limits.NEEDED_POSITIONS.kept_by(needed):
        return
    tight = limits.OWN_WIDTH.kept_by(own / positions)
    typical = sorted(w * n for w, n in zip(widths, sizes, strict=True))[len(sizes) // 2]
    if not tight and not limits.POSITIONS_TO_GROUP.reached_by(typical):
        return
    fixed = numbers_equal(run, widths[0]) if tight and len(set(widths)) == 1 else []
    yield finding(
        f"{1 - real / positions:.0%} of all token positions are padding",
        _where(run, tight, fixed),
        (
            counted(
                f"{real} real tokens in {positions} positions of {rows.batches} batches",
                positions - real,
                positions,
                limits.WASTED_POSITIONS,
                signal="samples",
            ),
            compared(
                f"padded to the longest row of each batch: {own} positions; grouped by length: "
                f"{grouped}",
                needed,
                limits.NEEDED_POSITIONS,
                below=True,
                signal="samples",
            ),
        ),
        Fix(
            "Pad each batch to its own longest row."
            if tight
            else "Draw batches from rows of about the same length (bucketing)."
        ),
    )


def _padded(lengths: Sequence[int], sizes: Sequence[int]) -> int:
    """Positions that batches of these sizes need, each padded to its own longest row."""
    positions = start = 0
    for n in sizes:
        batch = lengths[start : start + n]
        positions += len(batch) * max(batch)
        start += n
    return positions


def _where(run: Run, tight: bool, fixed: Sequence[Site]) -> tuple[Site, ...]:
    """Where rows are padded, or where they are drawn, whichever is to be changed."""
    pads = data_lines(run, "pad")
    near = inside_collate(run, pads) or pads[:1]
    loaders, feeding = loader_sites(run), feeding_sites(run)
    return locate(
        *(near[:1] if tight else _ordering(run)[:1] or loaders[:1]),
        *fixed[:1],
        *(() if loaders else feeding[:1]),
        *near[:2],
        *loaders,
        *feeding,
    )[:4]


def _ordering(run: Run) -> list[Site]:
    """Lines of the script's own sampler that order the rows; none where the loader draws with those
    of PyTorch.
    """
    loader = training_loader(run)
    if loader and loader.batch_sampler == "BatchSampler" and loader.sampler in OF_PYTORCH:
        return []
    own = ("__iter__", "__call__", "sampler", "batches")
    return [s for s in calls_of(run, ("order",)) if s.function in own]
