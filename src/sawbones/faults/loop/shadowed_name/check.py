"""A name that was overwritten by something else and is then used as what it was

## What it sees
The record of a crash: a call of something that cannot be called, or an attribute that the value
does not have, under a name that the script itself gave another value before: by its own result
(loss_fn = loss_fn(...)), or because it is the name of a function of Python (len, max, list). Fires
on the step of the crash, mostly the second.

## Why it matters
The script ends here, one pass after the line that did it.

## Looks like
TypeError: 'Tensor' object is not callable.

## Example
    loss = nn.MSELoss()
    for x, y in batches:
        loss = loss(model(x), y)

## Use instead
    criterion = nn.MSELoss()
    for x, y in batches:
        loss = criterion(model(x), y)

## Confirm it
Nothing is left to confirm: the value under the name and the line that put it there are known.

## False alarms
A value that is called although it never was a function (x.shape(0)) is loop.api-misuse.

## References
The loss function and the loss under one name.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, Bound, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_values import reads_as_number
from sawbones.stats.crashes import crash, deliberate, inner_frame, library_frames

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse",)
EXPERIMENT = None
_VALUES = ("tensor", "number", "text", "sequence", "mapping", "array", "none")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    expression = frame.expression
    fits = "TypeError" in died.classes or "AttributeError" in died.classes
    if deliberate(died) or not fits or expression is None or library_frames(died):
        raise NothingToJudge("no call or attribute was refused by Python itself")
    name, bound = _used(frame)
    if expression.kind in ("binary", "augment"):
        yield from _operand(run, frame)
        return
    if not name or bound is None or bound.kind not in _VALUES:
        return
    over = _overwritten(frame, name)
    if over is not None:
        yield _finding(run, frame, name, bound, over)


def _operand(run: Run, frame: CrashFrame) -> Iterator[Finding]:
    """A number or tensor is computed with a name that a later line gave a text, a list or None."""
    operands = frame.expression.operands if frame.expression is not None else ()
    for operand in operands:
        bound = operand.bound
        if bound is None or bound.kind not in ("text", "none", "sequence", "mapping"):
            continue
        made = [a for a in frame.assignments if a.name == operand.text]
        numbers = [a for a in made if reads_as_number(a.text)]
        later = [a for a in made if numbers and a.site.line > numbers[0].site.line]
        if later and not reads_as_number(later[-1].text):
            yield _finding(run, frame, operand.text, bound, later[-1])
            return


def _used(frame: CrashFrame) -> tuple[str, Bound | None]:
    """The name that is called, or whose attribute is asked for."""
    expression = frame.expression
    if expression is None:
        return "", None
    if expression.kind == "call" and expression.called is not None:
        text = expression.text.partition("(")[0]
        return text, expression.called
    if expression.kind in ("attribute", "call") and expression.operands:
        first = expression.operands[0]
        return first.text, first.bound
    return "", None


def _overwritten(frame: CrashFrame, name: str) -> Assignment | None:
    """The line that put another value under the name."""
    own = [a for a in frame.assignments if a.name == name and a.how in ("assign", "loop")]
    for made in own:
        if name in made.calls or (made.text.startswith(f"{name}(") and made.how == "assign"):
            return made
        if name.rpartition(".")[2] in made.calls and "." in name:
            return made
    if hasattr(builtins, name) and own:
        return own[-1]
    before = [a for a in frame.assignments if a.name == name]
    called = frame.expression is not None and frame.expression.kind == "call"
    known_before = any(a.how in ("import", "argument") for a in before) or len(own) > 1
    return own[-1] if called and own and known_before else None


def _finding(run: Run, frame: CrashFrame, name: str, bound: Bound, over: Assignment) -> Finding:
    first = next((a for a in frame.assignments if a.name == name and a is not over), None)
    of_python = hasattr(builtins, name)
    was = f"the function {name} of Python" if of_python else f"what line {_line(first)} made it"
    fresh = f"{name.rpartition('.')[2]}_value"
    if over.how == "loop":
        remedy = f"Give the loop at line {over.site.line} another variable than {name}."
    else:
        remedy = (
            f"Give the result at line {over.site.line} a name of its own: {fresh} = {over.text}."
        )
    where: tuple[Site | None, ...] = (over.site, frame.site, first.site if first else None)
    return explained(
        run,
        f"{name} is a {bound.cls} since line {over.site.line} and is used as what it was before",
        where,
        Fix(remedy),
        expected=was,
        got=f"a {bound.cls}",
        because=f"line {over.site.line} puts another value under the name: {over.site.code}",
        sizes=[Size(name, bound.cls, f"line {over.site.line}")],
    )


def _line(first: Assignment | None) -> str:
    return str(first.site.line) if first is not None else "?"
