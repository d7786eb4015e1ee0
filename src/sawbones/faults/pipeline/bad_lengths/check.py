"""Lengths that do not fit what they are to divide or to pack

## What it sees
The record of a crash in random_split (the lengths of the parts), in pack_padded_sequence (the
lengths of the sequences), or in __getitem__ of a data set (its __len__): a sum that is not the
number of rows, a sequence of length 0, lengths that are not in falling order, lengths beyond the
padded size, a sample that __len__ promises and the data are too short for. Fires on the step of the
crash.

## Why it matters
The script ends here, in the second case at the first batch that is concerned.

## Looks like
ValueError: Sum of input lengths does not equal the length of the input dataset!, or RuntimeError:
Length of all samples has to be greater than 0.

## Example
    parts = random_split(data, [int(0.9 * len(data)), int(0.1 * len(data))])

## Use instead
    first = int(0.9 * len(data))
    parts = random_split(data, [first, len(data) - first])

## Confirm it
Nothing is left to confirm: the lengths are in the record.

## False alarms
Only a call that was refused is looked at.

## References
Two parts that are both rounded down; sentences that consist of padding only; batches that are not
sorted by length.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crash_values import longer_than, not_positive, number_of, unordered
from sawbones.stats.crashes import crash, frame_of, inner_frame, makers

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse", "pipeline.missing-key")
EXPERIMENT = None
_FETCHING = "torch.utils.data._utils.fetch"
_DATASETS = "torch.utils.data.dataset"


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    split = frame_of(died, "random_split", "torch.utils.data")
    packing = frame_of(died, "pack_padded_sequence", "torch.nn.utils")
    if split is not None and "lengths" in split.values:
        yield from _split(run, split, split.values["lengths"])
    elif packing is not None:
        yield from _packed(run, packing)
    elif not (yield from _beyond_the_end(run)):
        raise NothingToJudge("no split, no packing and no sample of a data set was refused")


def _split(run: Run, frame: CrashFrame, lengths: Bound) -> Iterator[Finding]:
    parts = [number_of(item) for item in lengths.items]
    known = [part for part in parts if part is not None]
    user = inner_frame(crash(run))
    operands = user.expression.operands if user.expression is not None else ()
    data = operands[0].text if operands else "the data set"
    shown = " + ".join(map(str, known))
    made = [a.site for o in operands[1:2] for a in makers(run, o.text) if a.text]
    yield explained(
        run,
        f"The parts of the split add up to {sum(known)}, which is not the number of rows",
        (user.site, *made[:1]),
        Fix(
            f"Let the last part take the rest: [..., len({data}) - {' - '.join(map(str, known[:-1]))}"
            "], since int() rounds every part down; or give shares that add up to 1."
        ),
        expected=f"parts that add up to len({data})",
        got=f"{shown} = {sum(known)}",
        because="a share of the rows is rounded down in each part, and the remainder is in none",
        sizes=[Size(f"part {n}", str(part)) for n, part in enumerate(known, 1)][:4],
    )


def _beyond_the_end(run: Run) -> Generator[Finding, None, bool]:
    """A loader asks for sample i, which its data set has promised by __len__, and __getitem__ reads
    past the end of what it holds.
    """
    died = crash(run)
    frame = inner_frame(died)
    asked = frame.expression
    holder = frame.values.get("self")
    fetched = any(f.home == _FETCHING for f in died.frames)
    chosen = any(f.home == _DATASETS for f in died.frames)  # of Subset: indices of the user's own
    if "IndexError" not in died.classes or frame.site.function != "__getitem__" or chosen:
        return False
    if asked is None or asked.kind != "subscript" or len(asked.operands) != 2 or not fetched:
        return False
    counting = holder.lines.get("__len__") if holder is not None else None
    owner, place = asked.operands
    position = number_of(place.bound)
    arguments = [a.name for a in frame.assignments if a.how == "argument" and a.name != "self"]
    sample = number_of(frame.values.get(arguments[0])) if arguments else None
    size = _size(owner.bound)
    if counting is None or holder is None or position is None or sample is None or size is None:
        return False
    ahead = position - sample
    longer = any((_size(item) or 0) > size for item in holder.items)
    if ahead < 0 or position < size or sample < 0 or (longer and not ahead):
        return False  # of two lists that differ, either may be the wrong one
    last = holder.lines.get("end of __len__", counting)
    yield explained(
        run,
        f"{holder.cls} promises a sample {sample} by __len__ and reads past the end for it",
        (last, frame.site),
        Fix(
            f"Count the samples that {owner.text} is long enough for: __len__ has to return "
            f"{size - ahead} here, which is len({owner.text})"
            + (f" - {ahead}" if ahead else "")
            + "."
        ),
        expected=f"at most {size - ahead} samples",
        got=f"at least {sample + 1}",
        because=f"sample {sample} asks {owner.text} for number {position}, and it holds {size}",
        sizes=[Size(owner.text, str(size)), Size(place.text, str(position))],
        exactly=(position, size - 1),
    )
    return True


def _size(owner: Bound | None) -> int | None:
    if owner is None:
        return None
    if owner.kind in ("tensor", "array"):
        return owner.shape[0] if owner.shape else None
    return owner.length if owner.kind == "sequence" else None


def _packed(run: Run, frame: CrashFrame) -> Iterator[Finding]:
    given, lengths = frame.values.get("input"), frame.values.get("lengths")
    ordered, first = frame.values.get("enforce_sorted"), frame.values.get("batch_first")
    if lengths is None or given is None:
        return
    user = inner_frame(crash(run))
    operands = user.expression.operands if user.expression is not None else ()
    name = operands[1].text if len(operands) > 1 else "lengths"
    batch_first = number_of(first) == 1
    steps = (*given.shape, 0, 0)[1 if batch_first else 0]
    sites: tuple[Site | None, ...] = (
        user.site,
        *(a.site for a in makers(run, name) if a.text and a.how != "argument"),
    )
    sizes = [Size(operands[0].text if operands else "input", written(given.shape))]
    if not_positive(lengths):
        yield explained(
            run,
            "A sequence of length 0 is to be packed",
            sites,
            Fix(
                f"Leave empty sequences out of the data, or clamp: {name}.clamp(min=1), and mask "
                "what comes of them."
            ),
            expected="lengths of at least 1",
            got=f"{name} holds a 0",
            because="a sample of this batch consists of padding only",
            sizes=sizes,
        )
    elif number_of(ordered) == 1 and unordered(lengths):
        old = "".join(user.expression.text.rpartition(")")[:1]) if user.expression else ""
        change = (f"{old})", f"{old}, enforce_sorted=False)") if old else None
        local = change is not None and change[0] in user.site.code
        yield explained(
            run,
            f"{name} is not in falling order, and the sequences are packed as if it were",
            sites,
            Fix(
                "Pack with enforce_sorted=False (or sort each batch by length, longest first).",
                replace=change if local else None,
            ),
            expected="lengths from the longest to the shortest",
            got=f"{name} in another order",
            because="enforce_sorted is True unless it is given",
            sizes=sizes,
        )
    elif longer_than(lengths, steps):
        yield explained(
            run,
            f"{name} goes beyond the {steps} steps of what is packed",
            sites,
            Fix("Say batch_first=True where the batch is the first axis, or cut the lengths."),
            expected=f"lengths of at most {steps}",
            got=f"larger ones in {name}",
            because="" if batch_first else "batch_first is False: the first axis is taken for time",
            sizes=sizes,
        )
