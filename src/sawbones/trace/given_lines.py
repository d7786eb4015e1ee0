"""From the line that uses data back to the line that made it: variables are followed through
selections and moves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.schema import Run, Site, SourceLine

HOPS = 4
_CARRIES_ON = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "float",
        "double",
        "half",
        "long",
        "int",
        "clone",
        "detach",
        "contiguous",
        "unsqueeze",
        "squeeze",
        "view",
        "reshape",
        "transpose",
        "permute",
        "flatten",
        "pin_memory",
        "type",
        "split",
        "chunk",
        "copy",
        "astype",
        "index_select",
    }
)


def given_lines(
    run: Run, site: Site | None, kinds: tuple[str, ...] = ("assign",)
) -> tuple[Site, ...]:
    """Where the data that this line gives to its calls was made; empty where that cannot be read
    off the source. `kinds`: with "unpack", also where several were made at once.
    """
    rows = [r for r in run.source_lines if r.kind in kinds and r.name]
    found: list[Site] = []
    for name in _given(_parsed(site.code) if site is not None else None):
        made = _followed(rows, name, site) if site is not None else None
        if made is not None and made not in found:
            found.append(made)
    return tuple(found)


def _followed(rows: list[SourceLine], name: str, at: Site) -> Site | None:
    for _ in range(HOPS):
        here = [r.site for r in rows if r.name == name and r.site.file == at.file]
        here = [s for s in here if s.function in (at.function, "<module>")]
        before = [s for s in here if s.line < at.line or s.function != at.function]
        own = [s for s in before if s.function == at.function] or before
        if not own:
            return None
        at = max(own, key=lambda s: s.line)
        further = _carried(_value(_parsed(at.code)))
        if further is None:
            return at
        name = further
    return at


def _parsed(code: str) -> ast.AST | None:
    try:
        return ast.parse(
            code.strip().rstrip(":")
            if code.strip().startswith(("for ", "with ", "if ", "while "))
            else code.strip()
        )
    except SyntaxError:  # the first of several lines
        return None


def _value(tree: ast.AST | None) -> ast.AST | None:
    first = tree.body[0] if isinstance(tree, ast.Module) and tree.body else None
    return first.value if isinstance(first, (ast.Assign, ast.AnnAssign)) else None


def _carried(node: ast.AST | None) -> str | None:
    """The variable whose values these are: it itself, a part of it, or it on another device or in
    another shape.
    """
    while node is not None:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _CARRIES_ON
        ):
            node = node.func.value
        else:
            return None
    return None


def _given(tree: ast.AST | None) -> Iterator[str]:
    """Variables among the arguments of calls, the innermost call first: model(x[rows]) is given
    x.
    """
    calls = (
        [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    )
    for call in reversed(calls):
        for argument in (*call.args, *(word.value for word in call.keywords)):
            name = _carried(argument)
            if name is not None:
                yield name
