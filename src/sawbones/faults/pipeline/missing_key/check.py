"""A key, label or position that a dictionary, table or list does not have

## What it sees
The record of a crash at an index: the keys of the dictionary, the columns and row labels of the
table, or the length of the list, against what was asked for. In a worker of a DataLoader, the line
that failed there and what the data set holds. Fires on the step of the crash.

## Why it matters
The script ends here, often in the middle of an epoch, at the first sample that is concerned.

## Looks like
KeyError: 17, KeyError: 'd00', or IndexError: list index out of range in __getitem__.

## Example
    labels = table[table["score"] > 0.3]["label"]
    first = labels[0]  # the row with the label 0 may be gone

## Use instead
    labels = table[table["score"] > 0.3]["label"].reset_index(drop=True)
    first = labels[0]

## Confirm it
Nothing is left to confirm: what was asked for and what there is are both in the record.

## False alarms
Only an index that was refused is looked at. Token ids past an embedding, labels past the classes
and positions past a table are faults of their own.

## References
A pandas Series in __getitem__ after train_test_split; a vocabulary built from the training texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Operand, Run, Site, Size
from sawbones.stats.crashes import (
    attribute_lines,
    crash,
    deliberate,
    inner_frame,
    library_frames,
    makers,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_REFUSED = ("KeyError", "IndexError")
_OWNERS = ("mapping", "sequence", "table", "tensor", "array")
_READING = re.compile(r"self\.(\w+)\s*\[")
_COMMON_KEYS = 20  # a dictionary with more keys than a batch or a configuration has


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    asked = any(name in died.classes for name in _REFUSED)
    if deliberate(died) or not asked:
        raise NothingToJudge("no key and no position was refused")
    expression = frame.expression
    if expression is not None and expression.kind == "subscript" and expression.operands:
        owner = expression.operands[0]
        pandas = any(f.home.split(".")[0] == "pandas" for f in library_frames(died))
        plain = not library_frames(died)
        if owner.bound is not None and (plain or pandas) and owner.bound.kind in _OWNERS:
            yield from _indexed(run, frame, owner, expression.operands[1:])
    elif died.remote:
        yield from _in_worker(run, frame)


def _indexed(
    run: Run, frame: CrashFrame, owner: Operand, asked: tuple[Operand, ...]
) -> Iterator[Finding]:
    assert owner.bound is not None
    where = _sites(run, frame, owner)
    kind = owner.bound.kind
    if kind == "mapping":
        yield _no_key(run, frame, owner, asked, where)
    elif kind == "table":
        position = asked[0].text if asked else "i"
        yield _no_label(run, owner.text, owner.bound, position, where)
    else:
        yield from _too_far(run, frame, owner, asked, where)


def _sites(run: Run, frame: CrashFrame, owner: Operand) -> tuple[Site | None, ...]:
    made = [a.site for a in makers(run, owner.text) if a.text]
    written = owner.bound.lines.get("written") if owner.bound is not None else None
    return (frame.site, written, *attribute_lines(frame, owner.text), *made[:2])


def _no_key(
    run: Run,
    frame: CrashFrame,
    owner: Operand,
    asked: tuple[Operand, ...],
    where: tuple[Site | None, ...],
) -> Finding:
    assert owner.bound is not None
    key = crash(run).message.strip() or (asked[0].text if asked else "")
    keys, name = owner.bound.keys, owner.text
    near = get_close_matches(key.strip("'\""), keys, 1)
    shown = ", ".join(keys[:8]) + (", ..." if owner.bound.length > len(keys[:8]) else "")
    written = asked[0].text if asked else key
    if near:
        fix = f"{name} has {near[0]!r}: use one spelling in both places."
    elif owner.bound.length > _COMMON_KEYS or not written.startswith(("'", '"')):
        fix = (
            f"Give what is not in {name} an entry of its own: {name}.get({written}, unknown); or "
            f"add {key} where {name} is filled."
        )
    else:
        fix = f"Add {key} where {name} is made, or ask for one of its keys: {shown}."
    return explained(
        run,
        f"{name} has no key {key}",
        where,
        Fix(fix),
        expected=f"one of its {owner.bound.length} keys ({shown})",
        got=key,
        because=_filled(run, owner, frame),
        sizes=[Size(name, f"{owner.bound.length} keys", owner.bound.cls)],
    )


def _filled(run: Run, owner: Operand, frame: CrashFrame) -> str:
    lines = [*attribute_lines(frame, owner.text)]
    made = [a for a in makers(run, owner.text) if a.text]
    if made:
        return f"{owner.text} comes from {made[0].text} (line {made[0].site.line})"
    return f"{owner.text} is set at line {lines[0].line}: {lines[0].code}" if lines else ""


def _no_label(
    run: Run, name: str, table: Bound, position: str, where: tuple[Site | None, ...]
) -> Finding:
    said = [line for line in crash(run).message.strip().split("\n") if line.strip(" ^~")]
    key = said[-1].removeprefix("KeyError: ") if said else "this"
    if table.cls == "DataFrame":
        expected = f"one of the columns {', '.join(table.keys[:8])}"
        because = f"{name}[...] of a DataFrame asks for a column, not for a row"
        fix = f"Take the row by its position: {name}.iloc[{position}]."
    else:
        labels = ", ".join(map(str, table.settings.get("labels") or ()))
        expected = f"one of the row labels of {name}: {labels}, ..."
        because = (
            f"{name} has {table.length} rows that kept the labels they had before rows were "
            f"selected; {name}[{position}] asks for a label, not for a position"
        )
        fix = (
            f"Ask by position: {name}.iloc[{position}]; or number the rows anew where they are "
            "selected: .reset_index(drop=True)."
        )
    return explained(
        run,
        f"{name} has no {'column' if table.cls == 'DataFrame' else 'row'} labelled {key}",
        where,
        Fix(fix),
        expected=expected,
        got=key,
        because=because,
        sizes=[Size(name, f"{table.length} rows", table.cls)],
    )


def _too_far(
    run: Run,
    frame: CrashFrame,
    owner: Operand,
    asked: tuple[Operand, ...],
    where: tuple[Site | None, ...],
) -> Iterator[Finding]:
    assert owner.bound is not None
    place = asked[0] if len(asked) == 1 else None
    if place is None or place.bound is None or place.bound.value is None:
        return
    index = int(place.bound.value)
    size = owner.bound.length if owner.bound.kind == "sequence" else (*owner.bound.shape, 0)[0]
    if not size:
        because = f"{owner.text} is empty"
        fix = f"Find out why {owner.text} is empty where it is filled; the loop may not have run."
    else:
        longer = _longer(frame, owner.text, size)
        because = f"{longer}; " if longer else ""
        because += f"its positions go from 0 to {size - 1}"
        fix = (
            f"Count what both have: __len__ has to return the length of the shorter one ({size}), "
            "or the missing rows have to be added."
            if longer
            else f"Keep {place.text} below len({owner.text}), which is {size}."
        )
    yield explained(
        run,
        f"{owner.text} has {size} elements and is asked for number {index}",
        (*where[:1], *_length_lines(frame), *where[1:]),
        Fix(fix),
        expected=f"a position below {size}",
        got=str(index),
        because=because,
        sizes=[Size(owner.text, str(size), owner.bound.cls), Size(place.text, str(index))],
    )


def _longer(frame: CrashFrame, name: str, size: int) -> str:
    """Another list of the same object, with more elements."""
    holder = frame.values.get("self")
    if holder is None or not name.startswith("self."):
        return ""
    for key, item in zip(holder.keys, holder.items, strict=False):
        length = item.length if item.kind in ("sequence", "table") else (*item.shape, -1)[0]
        if length > size and item.kind in _OWNERS and f"self.{key}" != name:
            return f"self.{key} has {length} elements"
    return ""


def _length_lines(frame: CrashFrame) -> list[Site]:
    holder = frame.values.get("self")
    line = holder.lines.get("__len__") if holder is not None else None
    return [line] if line is not None and frame.site.function == "__getitem__" else []


def _in_worker(run: Run, frame: CrashFrame) -> Iterator[Finding]:
    """The line that failed in a worker, and what the data set of this process holds under the names
    that it reads.
    """
    died = crash(run)
    site = died.remote[-1]
    loaders = [b for f in died.frames for b in f.values.values() if b.kind == "loader"]
    for name in _READING.findall(site.code):
        for loader in loaders:
            held = dict(zip(loader.keys, loader.items, strict=False))
            bound = held.get(name)
            where = (site, loader.lines.get(name), frame.site)
            if bound is not None and bound.kind == "table" and not bound.settings["by_position"]:
                asked = re.search(rf"self\.{name}\s*\[([^]]*)\]", site.code)
                position = asked[1] if asked is not None else "i"
                yield _no_label(run, f"self.{name}", bound, position, where)
                return
