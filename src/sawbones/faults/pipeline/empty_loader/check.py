"""A loader that gives no batch

## What it sees
The record of a crash that a loop without a pass leaves behind (a mean over nothing, a name that no
pass has set, a batch that is asked of an empty loader, an element of an empty list), together with
a DataLoader of zero batches: an empty data set, or fewer rows than one batch under drop_last. Also
next() of an iterator that was made once and has given every batch. Fires on the step of the crash.

## Why it matters
The script ends here, and the line that it ends at says nothing about the data.

## Looks like
ZeroDivisionError: float division by zero, UnboundLocalError, or StopIteration after the epoch.

## Example
    loader = DataLoader(TensorDataset(rows[:6]), batch_size=8, drop_last=True)
    for number, batch in enumerate(loader):
        pass
    print(total / (number + 1))

## Use instead
    loader = DataLoader(TensorDataset(rows[:6]), batch_size=8)
    for number, batch in enumerate(loader):
        pass
    print(total / (number + 1))

## Confirm it
Nothing is left to confirm: the number of batches is a fact of the loader.

## False alarms
An empty loader in a script that ends for another reason: only exceptions that an empty loop causes
are looked at.

## References
Validation sets of fewer rows than the batch size, folders whose pattern matches no file.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Loader, Run, Site, Size
from sawbones.stats.crashes import crash, deliberate, frame_of, inner_frame, makers

NEEDS = ("crash", "crash_record")
USES = ("loaders",)
EXPLAINS = ("loop.unassigned-name", "pipeline.missing-key", "loop.api-misuse")
EXPERIMENT = None
PREVIEW = True
# What is left of a loop that did not run once.
_LEFT = ("ZeroDivisionError", "UnboundLocalError", "NameError", "StopIteration")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    if deliberate(died):
        raise NothingToJudge("the script raised the exception itself")
    sampler = frame_of(died, "__init__", "torch.utils.data.sampler")
    if sampler is not None and "ValueError" in died.classes:
        yield from _no_rows(run, sampler)
        return
    ended = _at_its_end(run)
    if ended is not None:
        yield ended
        return
    empty = [loader for loader in run.loaders if loader.length == 0]
    if not empty:
        raise NothingToJudge("every loader of this run gives batches, or the run has none")
    frame = inner_frame(died)
    if any(name in died.classes for name in _LEFT) or _of_empty_list(frame):
        yield _no_batch(run, frame, empty[-1])


def _at_its_end(run: Run) -> Finding | None:
    """next() of an iterator that has given every batch of its loader."""
    frame = inner_frame(crash(run))
    call = frame.expression
    given = call.operands[0] if call is not None and call.operands else None
    if call is None or given is None or given.bound is None or given.bound.kind != "loader":
        return None
    if call.name != "next" or "StopIteration" not in crash(run).classes or len(call.operands) > 1:
        return None
    made = [a for a in makers(run, given.text) if a.text]
    if not run.num_steps or not made:
        return None
    return explained(
        run,
        f"{given.text} has given its last batch, and another one is asked for",
        (frame.site, made[0].site),
        Fix(
            f"Begin anew at the end: except StopIteration: {given.text} = {made[0].text}; or loop "
            "over the loader itself, once per epoch."
        ),
        expected="an iterator with a batch left",
        got="its end (StopIteration)",
        because=f"{given.text} is made once, by {made[0].text} (line {made[0].site.line})",
    )


def _of_empty_list(frame: CrashFrame) -> bool:
    operands = frame.expression.operands if frame.expression is not None else ()
    return any(o.bound is not None and _is_empty(o.bound) for o in operands)


def _is_empty(bound: Bound) -> bool:
    return bound.kind in ("sequence", "mapping", "table") and bound.length == 0


def _no_batch(run: Run, frame: CrashFrame, loader: Loader) -> Finding:
    rows = loader.size
    if rows:
        title = f"The loader gives no batch: {rows} rows are fewer than one batch"
        fix = (
            f"Set drop_last=False for this loader, or a batch size of at most {rows} "
            f"(it is {loader.batch_size})."
        )
        because = f"drop_last leaves out a batch that is not full: {rows} of {loader.batch_size}"
        holders: list[tuple[str, Site | None]] = []
    else:
        title = "The loader gives no batch: its data set is empty"
        holders = list(_empty_members(run))
        named = holders[0][0] if holders else ""
        because = f"{loader.dataset or 'the data set'} holds no row" + (
            f": {named} is empty" if named else ""
        )
        fix = (
            f"Look at where {named or 'the data set'} is filled: the folder, the pattern or the "
            "filter matches nothing."
        )
    return explained(
        run,
        title,
        (*(site for _, site in holders), loader.site, frame.site),
        Fix(fix),
        expected="at least one batch",
        got="0 batches",
        because=because,
        sizes=[
            Size("rows", str(rows)),
            Size("batch_size", str(loader.batch_size), f"drop_last={loader.drop_last}"),
        ],
    )


def _empty_members(run: Run) -> Iterator[tuple[str, Site | None]]:
    """Lists of the data set that are empty, with the lines that set them."""
    for frame in crash(run).frames:
        for bound in frame.values.values():
            if bound.kind == "loader":
                for key, item in zip(bound.keys, bound.items, strict=False):
                    if _is_empty(item):
                        yield key, bound.lines.get(key)


def _no_rows(run: Run, sampler: CrashFrame) -> Iterator[Finding]:
    """DataLoader(shuffle=True) of an empty data set is refused when it is made."""
    source = sampler.values.get("data_source")
    if source is None:
        return
    held = zip(source.keys, source.items, strict=False)
    empty = [key for key, item in held if _is_empty(item)]
    if not _is_empty(source) and not empty:
        return
    frame = inner_frame(crash(run))
    operands = frame.expression.operands if frame.expression is not None else ()
    made = [a.site for o in operands[:1] for a in makers(run, o.text) if a.text]
    name = f"{source.cls}.{empty[0]}" if empty else source.cls
    lines = [source.lines.get(key) for key in empty[:1]]
    yield explained(
        run,
        f"The data set is empty: {name} holds no row",
        (*lines, *made[:1], frame.site),
        Fix(f"Look at where {name} is filled: the folder, the pattern or the filter is wrong."),
        expected="at least one row",
        got="0 rows",
    )
