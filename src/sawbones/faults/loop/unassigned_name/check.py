"""A name that is used although no line has given it a value

## What it sees
The record of a crash at a name: the lines of the function that would give it a value, the loop or
the condition that each of them stands under, and where the name is used. Fires on the step of the
crash.

## Why it matters
The script ends here: often after the first epoch, or only under one setting.

## Looks like
UnboundLocalError: cannot access local variable 'test_loss' where it is not associated with a value.

## Example
    def fit(test_loader):
        if test_loader is not None:
            test_loss = evaluate(test_loader)
        return test_loss

## Use instead
    def fit(test_loader):
        test_loss = None
        if test_loader is not None:
            test_loss = evaluate(test_loader)
        return test_loss

## Confirm it
Nothing is left to confirm: Python says that the name has no value.

## False alarms
A misspelt name that no line sets at all is left to Python's own message. Where a loader gives no
batch, pipeline.empty-loader is the cause.

## References
Losses that are only computed where there is a test set; counters of loops that did not run.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, CrashFrame, Finding, Fix, Run
from sawbones.stats.crashes import crash, deliberate, inner_frame

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    name = frame.expression.text if frame.expression is not None else ""
    if deliberate(died) or "NameError" not in died.classes or not name.isidentifier():
        raise NothingToJudge("no name was without a value")
    made = [a for a in frame.assignments if a.name == name and a.how != "append"]
    if made:
        yield _finding(run, frame, name, made)


def _finding(run: Run, frame: CrashFrame, name: str, made: list[Assignment]) -> Finding:
    because, fix, line = _reason(frame, name, made)
    return explained(
        run,
        f"{name} is used at line {frame.site.line} and has no value yet",
        (frame.site, line.site, *(a.site for a in made if a is not line)),
        Fix(fix),
        expected=f"a line that gives {name} a value and has run",
        got="none that has run",
        because=because,
    )


def _reason(frame: CrashFrame, name: str, made: list[Assignment]) -> tuple[str, str, Assignment]:
    first = made[0]
    if name in frame.values:  # the file has one of the same name
        return (
            f"the function gives {name} a value of its own (line {first.site.line}), so the one of "
            "the file is not seen in it",
            f"Give {name} to the function as an argument, or write global {name} at its top.",
            first,
        )
    looping = [a for a in made if a.loop and not _same_loop(a, frame)]
    if looping:
        inside = looping[0]
        over = _what_it_goes_over(frame, inside)
        return (
            f"only the loop at line {inside.loop} gives it a value, and that loop{over} did not "
            "run once",
            f"Give {name} a value before the loop, and find out why the loop has nothing to go "
            "over.",
            inside,
        )
    under = [a for a in made if a.branch]
    if under:
        inside = under[0]
        return (
            f"line {inside.site.line} gives it a value only where {inside.branch} (line "
            f"{inside.branch_line})",
            f"Give {name} a value before line {inside.branch_line} too, or use it only where "
            f"{inside.branch}.",
            inside,
        )
    return (
        f"line {first.site.line} gives it a value, after it is used",
        f"Move line {first.site.line} in front of line {frame.site.line}.",
        first,
    )


def _same_loop(made: Assignment, frame: CrashFrame) -> bool:
    return made.loop == frame.loop


def _what_it_goes_over(frame: CrashFrame, inside: Assignment) -> str:
    loops = [a for a in frame.assignments if a.how == "loop" and a.site.line == inside.loop]
    return f" over {loops[0].text}" if loops and loops[0].text else ""
