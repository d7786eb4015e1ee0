"""A position that runs past the table of positions

## What it sees
The exception that ended the run, the operator that raised it and what it was given: a look-up of
counted ids (0, 1, 2, ...) with an id at or past the number of rows, or a sequence that meets a
slice of a position table that is shorter than it. Fires when that happens.

## Why it matters
The run dies at the first batch that is long enough, or in generation as soon as the text outgrows
the context.

## Looks like
An IndexError, a device assert or a shape error after many good steps, only with some batches.

## Example
    logits = model(idx)
    idx = torch.cat([idx, sample(logits)], dim=1)

## Use instead
    logits = model(idx[:, -block_size:])
    idx = torch.cat([idx, sample(logits)], dim=1)

## Confirm it
The ids and the table at the moment of the failure are the proof.

## False alarms
Token ids past the vocabulary are data, not positions: they do not count up from 0. A shape error
between two tensors of which none comes out of a table is not looked at.

## References
Learned position tables end where training ended; the same error ends countless first attempts at
generation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.failures import Failure, failure, numbers_equal, user_frames
from sawbones.stats.loss_calls import places
from sawbones.stats.sequences import calls_of_model

NEEDS = ("crash",)
EXPLAINS = (
    "model.mask-shape",
    "pipeline.token-out-of-vocab",
    "data.label-out-of-range",
    "data.degenerate-samples",
)
EXPERIMENT = None
_COUNTING = ("arange", "cumsum", "linspace")


def check(run: Run) -> Iterator[Finding]:
    failed = failure(run)
    if failed is None:
        yield from _past_buffer(run)
        return
    found = _past_rows(failed) or _past_slice(failed)
    if found is None:
        return
    text, rows, length = found
    yield Finding(
        "model.position-bounds",
        "proven",
        0.99,  # ids that count up are no tokens, whatever else may be wrong with a look-up
        f"Position {length - 1} is past the table of {rows} positions",
        _where(run, failed, rows, length),
        (
            Evidence(text, "crash", (failed.step,), float(length - 1), float(rows - 1)),
            _how_often(run, rows, length),
        ),
        Fix(
            f"Cut sequences to the last {rows} tokens, or make the table as long as the "
            f"longest sequence ({length} or more)."
        ),
    )


def _past_rows(failed: Failure) -> tuple[str, int, int] | None:
    """An embedding of ids that count up."""
    if (
        failed.op not in ("embedding", "index_select", "__getitem__", "gather")
        or len(failed.inputs) < 2
    ):
        return None
    whole = [v for v in failed.inputs if str(v.get("dtype", "")).startswith("int")]
    tables = [
        v
        for v in failed.inputs
        if str(v.get("dtype", "")).startswith(("float", "bfloat"))
        and len(v.get("shape") or ()) >= 2
    ]
    if not whole or not tables or whole[0].get("max") is None:
        return None
    ids, rows = whole[0], int(tables[0]["shape"][0])
    shape, highest = tuple(ids["shape"]), int(ids["max"])
    counted = (
        bool(shape)
        and highest == shape[-1] - 1
        and int(ids.get("min") or 0) == 0
        and _is_evenly_spread(ids, highest)
    )
    made = any(
        op["name"] in _COUNTING and any(tuple(o["shape"])[-1:] == shape[-1:] for o in op["outputs"])
        for op in failed.last[-8:]
    )
    if highest < rows or not (counted or (made and highest < 4 * rows)):
        return None
    return (
        f"{failed.op} got ids 0 to {highest} of shape {shape} for a table of {rows} rows",
        rows,
        highest + 1,
    )


def _is_evenly_spread(ids: Mapping[str, Any], highest: int) -> bool:
    """Mean and spread are those of 0, 1, ... highest: tokens that happen to end there have
    others.
    """
    mean, std = ids.get("mean"), ids.get("std")
    if mean is None or std is None:
        return True
    even = math.sqrt(((highest + 1) ** 2 - 1) / 12)
    return (
        abs(float(mean) - highest / 2) < 0.01 * highest + 1e-6 and abs(float(std) / even - 1) < 0.1
    )


def _past_slice(failed: Failure) -> tuple[str, int, int] | None:
    """A slice of a table that ended before the sequence did."""
    sizes = failed.sizes
    if (
        failed.op not in ("add", "add_", "mul", "__iadd__", "sub")
        or sizes is None
        or len(failed.inputs) < 2
    ):
        return None
    for op in failed.last[-8:]:
        for made, given in zip(op["outputs"], op["inputs"], strict=False):
            shape, table = tuple(made["shape"]), tuple(given["shape"])
            whole = (
                op["name"] in ("__getitem__", "narrow", "slice", "index_select")
                and shape in failed.shapes
            )
            if (
                whole
                and shape[-1:] == table[-1:]
                and str(given.get("dtype", "")).startswith(("float", "bfloat"))
            ):
                rows, length = min(sizes), max(sizes)
                if rows in table and rows in shape:
                    text = (
                        f"{failed.op} met a sequence of {length} with {rows} positions: the "
                        f"table {table} has no more"
                    )
                    return text, rows, length
    return None


def _past_buffer(run: Run) -> Iterator[Finding]:
    """A library cuts its ready-made position ids to the batch: the error names both sizes, one of
    them is a table of positions.
    """
    said = re.search(
        r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)",
        run.ending.message or "",
    )
    if run.ending.kind != "exception" or said is None:
        return
    length, rows = int(said[1]), int(said[2])
    tables = [
        t
        for deep in run.deep
        for t in deep.tokens
        if t.role == "positions" and t.num_embeddings == rows
    ]
    if length <= rows or not tables:
        return
    text = (
        f"{(run.ending.message or '').splitlines()[0][:160]}; {tables[0].embedding} is a "
        f"table of {rows} positions"
    )
    yield Finding(
        "model.position-bounds",
        "proven",
        0.95,
        f"Position {length - 1} is past the table of {rows} positions",
        places(*numbers_equal(run, rows)[:1], run.ending.site),
        (
            Evidence(text, "crash", (run.num_steps,), float(length - 1), float(rows - 1)),
            _how_often(run, rows, length),
        ),
        Fix(
            f"Cut sequences to {rows} tokens (truncation), or build the model with at "
            f"least {length} positions."
        ),
    )


def _how_often(run: Run, rows: int, length: int) -> Evidence:
    """How many of the batches seen before were as long."""
    longest = [
        max((t["shape"][-1] for t in b.tensors if len(t.get("shape") or ()) == 2), default=0)
        for b in run.batches
    ]
    past = sum(n > rows for n in longest)
    text = (
        f"sequences of the {len(longest)} batches seen were up to {max(longest, default=0)} "
        f"long; {past} of them past {rows}"
    )
    return Evidence(text, "batches", (), float(length), float(rows))


def _where(run: Run, failed: Failure, rows: int, length: int) -> tuple[Site, ...]:
    frames = [site for site in user_frames(run) if site != failed.site]
    callers = [site for site in frames if site.function not in ("forward", "__call__", "<module>")]
    known = set(calls_of_model(run))
    # Generation, with or without gradients: the caller hands over one more each time. Data that is
    # too long comes all at once.
    growing = length == rows + 1 or not numbers_equal(run, rows)
    if growing and (failed.phase == "eval" or (known and callers and not known & set(frames))):
        return places(*(callers or frames)[:1], failed.site, *numbers_equal(run, rows)[:1])
    file = failed.site.file if failed.site is not None else ""
    numbers = [site for site in numbers_equal(run, rows) if site.file == file]
    built = [m.built for m in run.modules if m.settings.get("num_embeddings") == rows]
    return places(*numbers[:1], *built[:1], failed.site, *frames[:1])
