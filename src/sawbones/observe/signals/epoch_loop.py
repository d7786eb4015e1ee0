"""Where the loop over epochs stands: the user's line, inside of a loop, from which a sampler is
started anew each time.

The loop over batches is often in a function of its own; what belongs at the start of an epoch goes
one level up.
"""

from __future__ import annotations

import ast
import sys
from types import FrameType

from sawbones.observe.signals.source_files import parsed
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.schema import Site


def epoch_site(sites: SiteFinder, start: FrameType | None = None) -> Site | None:
    """The innermost user line that a loop encloses; the header of a loop is not inside of it."""
    frame: FrameType | None = start if start is not None else sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_user_file(name) and any(
            first < frame.f_lineno <= last for first, last in sites.off_file(_loops, name)
        ):
            return sites.of_frame(frame)
        frame = frame.f_back
    return None


def _loops(file: str) -> tuple[tuple[int, int], ...]:
    """(last line of the header, last line of the body) of every loop."""
    source = parsed(file)
    tree = source[0] if source is not None else ast.Module([], [])
    found = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return tuple(
        (node.body[0].lineno - 1, node.body[-1].end_lineno or node.lineno) for node in found
    )
