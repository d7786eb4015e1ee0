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
No experiment: the ids and the table at the moment of the failure make it likely.

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

from sawbones.evidence import context, finding, refused
from sawbones.evidence.limits import model as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.failures import Failure, failure, user_frames
from sawbones.trace.feeding import model_calls
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("crash",)
USES = ("source_numbers",)
EXPLAINS = (
    "model.mask-shape",
    "pipeline.token-out-of-vocab",
    "data.label-out-of-range",
    "data.degenerate-samples",
    "model.shape-mismatch",
)
EXPERIMENT = None
_COUNTING = ("arange", "cumsum", "linspace")


def check(run: Run) -> Iterator[Finding]:
    failed = failure(run)
    if failed is None:
        yield from _past_buffer(run)
        return
    found = _past_rows(failed) or _past_gathered(failed) or _past_slice(failed)
    if found is not None:
        text, size, length = found
        where = _where(run, failed, size, length)
        fix = (
            f"Cut sequences to the last {size} tokens, or make the table as long as the "
            f"longest sequence ({length} or more)."
        )
        yield _finding(run, text, size, length, where, fix)


def _finding(
    run: Run, text: str, size: int, length: int, where: tuple[Site, ...], fix: str
) -> Finding:
    step = int((run.ending.batch or {}).get("step", run.num_steps))
    return finding(
        f"Position {length - 1} is past the table of {size} positions",
        where,
        (
            refused(text, value=length - 1, expected=size - 1, steps=(step,)),
            _how_often(run, size, length),
        ),
        Fix(fix),
    )


def _is_real(value: Mapping[str, Any]) -> bool:
    return str(value.get("dtype", "")).startswith(("float", "bfloat"))


def _past_rows(failed: Failure) -> tuple[str, int, int] | None:
    """An embedding of ids that count up."""
    if failed.op not in ("embedding", "index_select", "__getitem__", "gather"):
        return None
    whole = [v for v in failed.inputs if str(v.get("dtype", "")).startswith("int")]
    tables = [v for v in failed.inputs if _is_real(v) and len(v.get("shape") or ()) >= 2]
    if not whole or not tables or whole[0].get("max") is None:
        return None
    ids, size = whole[0], int(tables[0]["shape"][0])
    shape, highest = tuple(ids["shape"]), int(ids["max"])
    counted = (
        shape[-1:] == (highest + 1,) and not ids.get("min") and _is_evenly_spread(ids, highest)
    )
    made = highest < 4 * size and any(
        op["name"] in _COUNTING and any(tuple(o["shape"])[-1:] == shape[-1:] for o in op["outputs"])
        for op in failed.last[-8:]
    )
    if highest < size or not (counted or made):
        return None
    text = f"{failed.op} got ids 0 to {highest} of shape {shape} for a table of {size} rows"
    return text, size, highest + 1


def _past_gathered(failed: Failure) -> tuple[str, int, int] | None:
    """Positions that were counted up pick from a ready-made row for every position."""
    if failed.op != "gather" or len(failed.inputs) < 2:
        return None
    table, ids = failed.inputs[:2]
    size, highest = int((table.get("shape") or (0,))[-1]), ids.get("max")
    if not size or highest is None or not size <= highest < 2 * size:
        return None
    shape = list(ids.get("shape") or ())
    counted = any(
        op["name"] in _COUNTING and any(list(o["shape"]) == shape for o in op["outputs"])
        for op in failed.last
    )
    if not counted:
        return None
    text = f"{failed.op} got positions up to {highest:.0f} for a table of {size}"
    return text, size, int(highest) + 1


def _is_evenly_spread(ids: Mapping[str, Any], highest: int) -> bool:
    """Mean and spread are those of 0, 1, ... highest: tokens that happen to end there have
    others.
    """
    mean, std = ids.get("mean"), ids.get("std")
    if mean is None or std is None:
        return True
    even = math.sqrt(((highest + 1) ** 2 - 1) / 12)
    return limits.POSITION_MEAN_OFF.kept_by(
        abs(float(mean) - highest / 2) / highest
    ) and limits.POSITION_SPREAD_OFF.undercut_by(abs(float(std) / even - 1))


def _past_slice(failed: Failure) -> tuple[str, int, int] | None:
    """A slice of a table that ended before the sequence did."""
    if failed.op not in ("add", "add_", "mul", "__iadd__", "sub") or failed.sizes is None:
        return None
    if failed.along_features:
        return None
    size, length = sorted(failed.sizes)
    for op in failed.last[-8:]:
        if op["name"] not in ("__getitem__", "narrow", "slice", "index_select"):
            continue
        for made, given in zip(op["outputs"], op["inputs"], strict=False):
            shape, table = tuple(made["shape"]), tuple(given["shape"])
            cut = shape in failed.shapes and shape[-1:] == table[-1:] and _is_real(given)
            if cut and size in table and size in shape:
                text = (
                    f"{failed.op} met a sequence of {length} with {size} positions: the "
                    f"table {table} has no more"
                )
                return text, size, length
    return None


def _past_buffer(run: Run) -> Iterator[Finding]:
    """A library cuts its ready-made position ids to the batch: the error names both sizes, one of
    them is a table of positions.
    """
    message = run.ending.message or ""
    said = re.search(
        r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)", message
    )
    if said is None:
        return
    length, size = int(said[1]), int(said[2])
    positions = [t for deep in run.deep for t in deep.tokens if t.role == "positions"]
    tables = [t.embedding for t in positions if t.num_embeddings == size]
    if length > size and tables:
        text = f"{message.splitlines()[0][:160]}; {tables[0]} is a table of {size} positions"
        where = locate(*numbers_equal(run, size)[:1], run.ending)
        fix = (
            f"Cut sequences to {size} tokens (truncation), or build the model with at "
            f"least {length} positions."
        )
        yield _finding(run, text, size, length, where, fix)


def _how_often(run: Run, size: int, length: int) -> Evidence:
    """How many of the batches seen before were as long."""
    longest = [
        max((t["shape"][-1] for t in b.tensors if len(t.get("shape") or ()) == 2), default=0)
        for b in run.batches
    ]
    past = sum(n > size for n in longest)
    text = (
        f"sequences of the {len(longest)} batches seen were up to {max(longest, default=0)} "
        f"long; {past} of them past {size}"
    )
    return context(text, signal="batches", value=length, expected=size)


def _where(run: Run, failed: Failure, size: int, length: int) -> tuple[Site, ...]:
    frames = [site for site in user_frames(run) if site != failed.site]
    callers = [site for site in frames if site.function not in ("forward", "__call__", "<module>")]
    known = set(model_calls(run))
    numbers = numbers_equal(run, size)
    # Generation, with or without gradients: the caller hands over one more each time. Data that is
    # too long comes all at once.
    growing = length == size + 1 or not numbers
    if growing and (failed.phase == "eval" or (known and callers and not known & set(frames))):
        return locate(*(callers or frames)[:1], failed, *numbers[:1])
    file = failed.site.file if failed.site is not None else ""
    own = [site for site in numbers if site.file == file]
    built = [m.built for m in run.modules if m.settings.get("num_embeddings") == size]
    return locate(*own[:1], *built[:1], failed, *frames[:1])
