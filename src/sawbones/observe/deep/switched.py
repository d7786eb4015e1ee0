"""Where gradients were switched off for an operator: the with-statement or the decorated function
around it.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType

from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.schema import Site

_OFF = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_MAX_FRAMES = 60


def switched_off_at(frame: FrameType | None, sites: SiteFinder) -> Site | None:
    """The innermost line of the user's that did it, None when it was done elsewhere."""
    inner: FrameType | None = None
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return None
        code = frame.f_code
        if (
            code.co_name == "decorate_context"
            and inner is not None
            and is_user_file(inner.f_code.co_filename)
        ):
            first = inner.f_code.co_firstlineno  # the decorator's line
            return _site(inner, first, sites)
        if is_user_file(code.co_filename):
            line = next(
                (
                    start
                    for start, end in sites.off_file(_off_regions, code.co_filename)
                    if start <= frame.f_lineno <= end
                ),
                None,
            )
            if line is not None:
                return _site(frame, line, sites)
        inner, frame = frame, frame.f_back
    return None


def _site(frame: FrameType, line: int, sites: SiteFinder) -> Site:
    filename = frame.f_code.co_filename
    return Site(
        sites.shown(filename),
        line,
        frame.f_code.co_name,
        linecache.getline(filename, line).strip()[:200],
    )


def _off_regions(filename: str) -> list[tuple[int, int]]:
    """(first, last line) of every with-statement that switches gradients off, innermost first."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    found = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.With, ast.AsyncWith))
        and any(_switches(item.context_expr) for item in node.items)
    ]
    return sorted(found, key=lambda span: span[1] - span[0])


def _switches(expression: ast.expr) -> bool:
    called = expression.func if isinstance(expression, ast.Call) else expression
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    return name in _OFF
