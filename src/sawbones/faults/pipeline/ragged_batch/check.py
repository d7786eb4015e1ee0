"""Samples of different shapes, types or keys that are to become one batch

## What it sees
The record of a crash in stack, in torch.tensor or in the collate function: the samples that were to
be joined, their shapes, and which of them differs. Fires on the step of the crash.

## Why it matters
The script ends here, at a batch that changes with the order of the samples.

## Looks like
RuntimeError: stack expects each tensor to be equal size, or ValueError: only one element tensors
can be converted to Python scalars.

## Example
    rows = [torch.ones(5), torch.ones(4)]
    batch = torch.stack(rows)

## Use instead
    rows = [torch.ones(5), torch.ones(4)]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)

## Confirm it
Nothing is left to confirm: the shapes of the samples are in the record.

## False alarms
Values that carry gradients are joined inside of a model: model.shape-mismatch.

## References
Images of different sizes, and one grey image among colour ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Crash, CrashFrame, Finding, Fix, Operand, Run, Site, Size
from sawbones.stats.crash_origins import cut_out, sites
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import (
    crash,
    deliberate,
    inner_frame,
    library_frames,
    makers,
    names_of,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse", "model.shape-mismatch")
EXPERIMENT = None
_COLLATE = "torch.utils.data._utils.collate"
_MAKING = ("tensor", "as_tensor", "FloatTensor", "LongTensor", "Tensor", "array", "stack")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    if deliberate(died):
        raise NothingToJudge("the script raised the exception itself")
    collating = [f for f in library_frames(died) if f.home == _COLLATE]
    remote = bool(died.remote) or "DataLoader worker" in died.message
    if collating:
        yield from _collated(run, died, collating)
    elif not remote:
        yield from _made(run, inner_frame(died))


def _collated(run: Run, died: Crash, frames: list[CrashFrame]) -> Iterator[Finding]:
    """The innermost collate function holds the samples, or one part of each."""
    for frame in reversed(frames):
        batch = frame.values.get("batch")
        if batch is not None and batch.kind == "sequence" and not batch.length:
            yield _nothing_left(run, died)
            return
        if batch is not None and batch.kind == "sequence" and batch.items:
            found = _odd(batch.items)
            if found is not None:
                yield _finding(run, died, inner_frame(died), batch, *found)
            elif batch.items[0].kind in ("object", "none", "module"):
                yield _objects(run, died, batch)
            return


def _objects(run: Run, died: Crash, batch: Bound) -> Finding:
    """Samples of a class that no batch can be made of: pictures, None, objects of the user's."""
    form, frame = batch.items[0].cls, inner_frame(died)
    return explained(
        run,
        f"The samples hold {form}, of which no batch can be made",
        (*_dataset(died), frame.site),
        Fix(
            f"Turn {form} into a tensor where the sample is made (a transform, torch.as_tensor), "
            "or give the loader a collate_fn of your own."
        ),
        expected="tensors, arrays, numbers, texts, or tuples and dicts of them",
        got=f"{batch.length} of {form}",
        because="the loader joins tensors and numbers, and knows nothing else",
    )


def _nothing_left(run: Run, died: Crash) -> Finding:
    """The collate function of the user leaves samples out, and of this batch all of them."""
    frame = inner_frame(died)
    operands = frame.expression.operands if frame.expression is not None else ()
    made = [a for o in operands for a in makers(run, o.text) if a.text]
    return explained(
        run,
        "No sample of this batch is left when the batch is made",
        (*(a.site for a in made[:1]), frame.site, *_dataset(died)),
        Fix(
            "Leave unusable samples out where the data set is built, so that none is None; or "
            "return None for an empty batch and skip it in the loop."
        ),
        expected="at least one sample",
        got="an empty list",
        because=f"{made[0].site.code} (line {made[0].site.line}) leaves out every sample of it"
        if made
        else "all samples of it were left out before",
    )


def _made(run: Run, frame: CrashFrame) -> Iterator[Finding]:
    expression = frame.expression
    if expression is None or expression.name not in _MAKING or not expression.operands:
        return
    rows = next((o for o in expression.operands if o.bound and o.bound.kind == "sequence"), None)
    if rows is None and "ValueError" in crash(run).classes:
        rows = _part_of(frame, expression.operands[0].text)
    if rows is None or rows.bound is None or not rows.bound.items:
        return
    items = rows.bound.items
    if any(item.requires_grad for item in items):
        return
    axes = {len(item.shape) for item in items if item.kind == "tensor"}
    if expression.name == "stack" and 0 in axes and len(axes) > 1:
        return  # an axis is lost, and no sample is shorter than another
    found = _odd(items)
    if found is not None:
        yield _finding(run, crash(run), frame, rows.bound, *found, name=rows.text)
    elif expression.name != "stack" and all(i.kind == "tensor" for i in items):
        yield _tensors(run, frame, rows.text, items)


def _part_of(frame: CrashFrame, text: str) -> Operand | None:
    """A slice of a list: its elements are those of the list."""
    names = [name for name in names_of(text) if frame.values.get(name) is not None]
    lists = [n for n in names if frame.values[n].kind == "sequence"]
    return Operand(lists[0], frame.values[lists[0]]) if lists else None


def _odd(items: tuple[Bound, ...]) -> tuple[int, str, str] | None:
    """(which sample, what it is, what most are), where one differs."""
    forms = [_form(item) for item in items]
    usual = Counter(forms).most_common(1)[0][0]
    for number, form in enumerate(forms):
        if form != usual:
            return number, form, usual
    return None


def _form(item: Bound) -> str:
    if item.kind in ("tensor", "array"):
        return f"{item.cls} of {written(item.shape)}"
    if item.kind in ("sequence", "mapping"):
        inner = {_form(i) for i in item.items if i.kind in ("tensor", "array", "sequence")}
        held = f" ({', '.join(sorted(inner))})" if inner else ""
        keys = f" with the keys {', '.join(item.keys)}" if item.kind == "mapping" else ""
        return f"{item.cls} of {item.length}{keys}{held}"
    return item.cls


def _finding(
    run: Run,
    died: Crash,
    frame: CrashFrame,
    batch: Bound,
    number: int,
    form: str,
    usual: str,
    name: str = "the batch",
) -> Finding:
    made = [a.site for a in makers(run, name)] if name != "the batch" else []
    # where the samples are put into the list, rather than where that begins empty
    made[:0] = [a.site for a in frame.assignments if a.how == "append" and a.name == name]
    dataset = _dataset(died) if name == "the batch" else ()
    cut = cut_out(run, "sample" if name == "the batch" else name)
    return explained(
        run,
        f"Sample {number + 1} of {batch.length} in {name} is a {form}, the others are {usual}",
        (*sites(cut), *made[:1], *dataset, frame.site),
        Fix(
            "Bring all samples to one size where they are made (resize, crop, pad), or give the "
            "loader a collate_fn that pads: nn.utils.rnn.pad_sequence."
        ),
        expected=f"{batch.length} samples of one form, {usual}",
        got=f"a {form} at place {number + 1}",
        because="a batch is one tensor, so all of its samples need one shape",
        sizes=[Size(f"sample {i + 1}", _form(item)) for i, item in enumerate(batch.items[:6])],
        exactly=(len({_form(item) for item in batch.items}), 1),
    )


def _dataset(died: Crash) -> tuple[Site, ...]:
    """Where the data set of the loader makes its samples."""
    loaders = [b for f in died.frames for b in f.values.values() if b.kind == "loader"]
    found = [loader.lines.get("__getitem__") for loader in reversed(loaders)]
    return tuple(site for site in found if site is not None)[:1]


def _tensors(run: Run, frame: CrashFrame, name: str, items: tuple[Bound, ...]) -> Finding:
    called = frame.expression.text.partition("(")[0] if frame.expression is not None else ""
    return explained(
        run,
        f"{called} is given a list of tensors",
        (frame.site, *(a.site for a in makers(run, name)[:1])),
        Fix(f"Join them: torch.stack({name})."),
        expected="numbers, or lists of numbers",
        got=f"{len(items)} tensors of {written(items[0].shape)} in {name}",
        because=f"{called} makes a tensor of Python numbers; tensors are joined by torch.stack",
        sizes=[Size(f"{name}[{i}]", written(item.shape)) for i, item in enumerate(items[:4])],
    )
