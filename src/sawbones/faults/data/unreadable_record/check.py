"""A record of the data that cannot be read as what it should be

## What it sees
The record of a crash where a text was to become a number, or a line was to become an object
(float, int, json.loads): the text itself, and how many records went well before. Fires on the step
of the crash.

## Why it matters
The script ends here, at the first record that is broken.

## Looks like
ValueError: could not convert string to float: 'N/A', or JSONDecodeError: Expecting value.

## Example
    humidity = float(row["humidity"])  # 'N/A'

## Use instead
    humidity = float("nan") if row["humidity"] == "N/A" else float(row["humidity"])

## Confirm it
Nothing is left to confirm: the text is in the record.

## False alarms
Only a conversion that was refused is looked at.

## References
Missing values written as words, lines that were written with str() in place of json.dumps.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import CrashFrame, Finding, Fix, Operand, Run, Size
from sawbones.stats.crash_values import reads_as_number
from sawbones.stats.crashes import crash, deliberate, inner_frame, library_frames, makers

NEEDS = ("crash", "crash_record")
EXPLAINS = ("pipeline.wrong-unpacking", "loop.api-misuse")
EXPERIMENT = None
_NUMBERS = ("float", "int")
_SHOWN = 60


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    expression = frame.expression
    if deliberate(died) or "ValueError" not in died.classes or expression is None:
        raise NothingToJudge("no text was refused as a number or as an object")
    below = library_frames(died)
    plain = expression.kind == "call" and not below
    if plain and expression.text.startswith(tuple(f"{name}(" for name in _NUMBERS)):
        given = expression.operands[0] if expression.operands else None
        if given is not None and given.bound is not None and given.bound.kind == "text":
            yield _number(run, frame, given, expression.name)
    elif below and below[-1].home == "json.decoder":
        texts = [f.values["s"] for f in below if "s" in f.values]
        text = texts[-1].keys[0] if texts and texts[-1].keys else ""
        yield _object(run, frame, text)


def _number(run: Run, frame: CrashFrame, given: Operand, wanted: str) -> Finding:
    assert given.bound is not None
    text = given.bound.keys[0] if given.bound.keys else ""
    made = [a.site for a in makers(run, given.text) if a.text]
    if not text.strip():
        advice = "Skip empty fields, or take them for missing"
    elif wanted == "int" and reads_as_number(text):
        advice = f"{text} is no whole number: int(float({given.text}))"
    else:
        advice = f"Take {text[:_SHOWN]!r} for missing: leave the row out, or use NaN and fill it"
    return explained(
        run,
        f"{given.text} is {text[:_SHOWN]!r}, which is no number",
        (frame.site, *made[:1]),
        Fix(f"{advice}, before {wanted}(...) at line {frame.site.line}."),
        expected=f"a text that {wanted}() can read",
        got=repr(text[:_SHOWN]),
        because=_how_far(frame),
        sizes=[Size(given.text, repr(text[:_SHOWN]))],
    )


def _object(run: Run, frame: CrashFrame, text: str) -> Finding:
    shown = text[:_SHOWN]
    if not text.strip():
        why, fix = "the text is empty", "Skip empty lines: if not line.strip(): continue."
    elif "'" in text and '"' not in text:
        why = "it is written with single quotes, as str() of a dict does; JSON has double ones"
        fix = "Write the records with json.dumps(record), or read this one with ast.literal_eval."
    else:
        why = "it is no JSON from its beginning to its end"
        fix = (
            "Look at this record in the file. A file with one object per line is read line by line "
            "(json.loads(line)), one with a single object as a whole (json.load(file))."
        )
    far = _how_far(frame)
    return explained(
        run,
        f"A record of the data is no JSON: {shown}",
        (frame.site,),
        Fix(fix),
        expected="a text that json can read",
        got=repr(shown),
        because=f"{why}; {far}" if far else why,
    )


def _how_far(frame: CrashFrame) -> str:
    """How many records were kept before, by the lists that the loop fills."""
    filled = {a.name for a in frame.assignments if a.how == "append"}
    counts = {
        name: bound.length
        for name, bound in frame.values.items()
        if bound.kind == "sequence" and bound.length > 0 and (name in filled or not filled)
    }
    if not frame.loop or not counts:
        return ""
    name, count = max(counts.items(), key=lambda pair: pair[1])
    return f"it comes after {count} records that went well ({name} holds {count})"
