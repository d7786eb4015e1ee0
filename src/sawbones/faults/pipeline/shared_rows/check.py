"""Rows that are kept and are one and the same array, written over later

## What it sees
Lists of eight NumPy arrays or more that np.stack, torch.tensor or torch.as_tensor put together, and
arrays that tensors are made from (torch.from_numpy, torch.tensor). Two rows are the same memory where
their values lie at one address and neither is gone. Fires when in a quarter of the lists of one line
several different arrays that had been seen before are the same memory, other rows are not, and that
memory was seen with different values at different times; at least four such memories have to come up.

## Why it matters
A row is meant to hold what was seen then, and holds what was written last: all states of an episode
are its last one, and what is learned belongs to none of them.

## Looks like
The loss of a Q network falls, the agent plays no better than by chance.

## Example
    def observe(self):
        return self.field.ravel()

## Use instead
    def observe(self):
        return self.field.ravel().copy()

## Confirm it
Copy every array where it is kept: the rows of a batch differ, and what is learned changes.

## False alarms
The same row drawn twice by a sampler is the same memory as well, but nobody writes to it, or, in a
ring of slots that are filled anew, it is the same array or a slice made for the draw. Slices of a
data set lie at addresses of their own. A state that is repeated to try several actions is the whole
list, with no row beside it. np.broadcast_to and padding rows that are shared are never written to.
Stacks of a few frames are too short to be judged, and a restart repeats its frame once in an episode.

## References
keras-rl issue 51; environments that return a view of their own buffer, as Gym's documentation warns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, counted, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.shared_rows import SharedRows
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import marked_lines

NEEDS = ("shared_rows",)
USES = ("source_lines",)
EXPLAINS = ()
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    if not run.shared_rows:
        raise NothingToJudge("no lists of arrays are put together")
    worst = max(run.shared_rows, key=lambda place: place.shared_rows)
    share = worst.shared_lists / worst.lists
    if not limits.SHARED_BUFFERS.reached_by(worst.buffers):
        return
    if not limits.SHARED_LISTS.reached_by(share):
        return
    text = (
        f"in {worst.shared_lists} of {worst.lists} lists that are put together here several rows "
        f"are one and the same memory ({worst.shared_rows} of {worst.rows} rows in all, "
        f"{worst.buffers} arrays), and it held other values before"
    )
    yield finding(
        "Rows that are kept are one array, which was written over",
        _where(run, worst),
        (
            counted(
                text,
                worst.shared_lists,
                worst.lists,
                limits.SHARED_LISTS,
                signal="shared_rows",
            ),
        ),
        Fix("Keep a copy of what was seen: state.copy() where it is returned or kept."),
    )


def _where(run: Run, worst: SharedRows) -> tuple[Site, ...]:
    """Lines that keep a thing as it is, not what a call makes of it; then where rows are joined."""
    site = worst.site
    kept = [
        line
        for line in marked_lines(run, "append")
        if site is not None and line.file == site.file and not _makes_anew(line.code)
    ]
    return locate(*kept[:2], site)


def _makes_anew(code: str) -> bool:
    try:
        tree = ast.parse(code.strip())
    except SyntaxError:  # the first of several lines
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return bool(calls and calls[0].args) and isinstance(calls[0].args[0], ast.Call)
