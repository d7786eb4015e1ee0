"""A data worker that cannot start, or dies

## What it sees
The record of a crash while a DataLoader starts its workers or waits for them: an object that cannot
be pickled, a script without a main guard, or a worker that is gone. Fires on the line that starts
the loop over the loader.

## Why it matters
The script ends here, or hangs.

## Looks like
AttributeError: Can't pickle local object, or RuntimeError: DataLoader worker exited unexpectedly.

## Example
    data.transform = lambda x: x / 255
    loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn")

## Use instead
    data.transform = to_unit_range  # a function at the top level of a file
    loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn")

## Confirm it
The same script with num_workers=0 gets past this line.

## False alarms
An exception that the dataset itself raises inside of a worker is named by its own cause.

## References
Workers that are spawned get the dataset by pickling; open files and lambdas cannot be pickled.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Crash, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crashes import crash, inner_frame, library_frames, makers

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse",)
EXPERIMENT = None
_LOADER = "torch.utils.data.dataloader"


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    below = library_frames(died)
    if not any(f.home == _LOADER for f in below):
        raise NothingToJudge("no DataLoader was at work where the script ended")
    last = below[-1]
    if last.home.startswith(("multiprocessing", "pickle", "_pickle", "copyreg")):
        yield _cannot_start(run, died, below)
    elif last.home == _LOADER and last.site.function in ("_try_get_data", "_get_data"):
        yield _gone(run, died)


def _where(run: Run, frame: CrashFrame) -> tuple[Site | None, ...]:
    operands = frame.expression.operands if frame.expression is not None else ()
    names = [o.text for o in operands] or [n for n, b in frame.values.items() if b.kind == "loader"]
    made = [a for name in names for a in makers(run, name) if a.text]
    unnamed = [a for a in made if "lambda" in a.text]  # a function without a name
    return (*(a.site for a in (*unnamed, *made)[:1]), frame.site, *(a.site for a in made[:1]))


def _cannot_start(run: Run, died: Crash, below: list[CrashFrame]) -> Finding:
    frame = inner_frame(died)
    loaders = [b for f in below for b in f.values.values() if b.kind == "loader"]
    workers = next((b.settings.get("num_workers") for b in loaders), None)
    what = next((b.settings.get("dataset") for b in loaders), "the data set")
    members = [str(m) for b in loaders for m in b.settings.get("unpicklable") or ()]
    if members:
        return _member(run, died, members[0], loaders)
    return explained(
        run,
        f"The workers of the DataLoader cannot start: {what} cannot be pickled",
        _where(run, frame),
        Fix(
            "Define the dataset class, its transforms and its collate function at the top level "
            "of a file (no lambda, nothing inside of a function), open files in __getitem__, and "
            'start the script under if __name__ == "__main__". num_workers=0 works meanwhile.'
        ),
        expected="a dataset that can be pickled",
        got=f"{died.exception} while it was pickled",
        because="a worker that is spawned gets its dataset by pickling",
        sizes=[Size("num_workers", str(workers))] if workers is not None else [],
    )


def _member(run: Run, died: Crash, member: str, loaders: list[Bound]) -> Finding:
    """The member of the loader or of its data set that no other process can be given."""
    frame = inner_frame(died)
    name, _, what = member.partition(": ")
    attribute = name.partition(".")[2]
    lines = [b.lines[attribute] for b in loaders if attribute in b.lines]
    code = [b.lines[f"code of {name}"] for b in loaders if f"code of {name}" in b.lines]
    workers = next((b.settings.get("num_workers") for b in loaders), None)
    advice = "Put a function or class at the top level of a file in its place"
    if what == "an open file" or what.startswith("a connection"):
        advice = "Keep its path, and open it in __getitem__, in the worker, at the first use"
    given, unnamed = _where(run, frame), "lambda" in what or "inside of" in what
    return explained(
        run,
        f"The workers of the DataLoader cannot start: {name} is {what}, which cannot be pickled",
        (*code[:1], *given[:1], *lines[:1], *given[1:]) if unnamed else (*lines[:1], *given),
        Fix(f"{advice} ({name}). num_workers=0 works meanwhile."),
        expected="a data set, transforms and a collate function that can be pickled",
        got=f"{what} as {name}",
        because="a worker that is spawned gets its data set by pickling",
        sizes=[Size("num_workers", str(workers))] if workers is not None else [],
    )


def _gone(run: Run, died: Crash) -> Finding:
    frame = inner_frame(died)
    return explained(
        run,
        "A worker of the DataLoader died without an exception",
        _where(run, frame),
        Fix(
            "Run once with num_workers=0: an error inside of the dataset then shows. If there is "
            "none, memory is short: fewer workers, or more shared memory (docker run --shm-size)."
        ),
        expected="workers that stay alive until the loop ends",
        got="one that is gone",
        because="the system ended it: out of memory or shared memory, or a crash in native code",
        at_most="likely",
    )
