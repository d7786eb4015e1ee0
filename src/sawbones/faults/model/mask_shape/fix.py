"""The mask along the keys, repeated so that it stays with its example, and as long as what it
hides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import FILLING, mask_arguments, operand, sizes_in
from sawbones.fixing.names import is_simple, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

ALONG_KEYS = "Let the mask run along the keys."


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                yield from _other_axis(source, node, node.slice.elts)
            elif isinstance(node, ast.Call):
                yield from _call(source, node)
                yield from _length(source, node)


def _other_axis(source: Source, node: ast.Subscript, parts: list[ast.expr]) -> Iterator[Change]:
    """Places of the index change: what ran along the queries runs along the keys, and what ran
    along the queries of all examples belongs to one each.
    """
    added = [isinstance(p, ast.Constant) and p.value is None for p in parts]
    if added == [True, True, False, False]:
        one, other = parts[0], parts[2]
    elif any(added[1:]) and len(parts) >= 3 and added[-1] != added[-2]:
        one, other = parts[-1], parts[-2]
    else:
        return
    edits = (
        replace(source, one, source.text_of(other)),
        replace(source, other, source.text_of(one)),
    )
    yield Change(ALONG_KEYS, edits)


def _call(source: Source, call: ast.Call) -> Iterator[Change]:
    name, func = called_name(call), call.func
    if not isinstance(func, ast.Attribute):
        return
    if name == "repeat" and len(call.args) == 3:
        heads = source.text_of(call.args[0])
        text = f"{source.text_of(func.value)}.repeat_interleave({heads}, dim=0)"
        yield Change(
            "Repeat each example's mask for its own heads.", (replace(source, call, text),)
        )
    elif name == "unsqueeze" and len(call.args) == 1:
        axis = {"-1": "-2", "2": "1", "3": "2"}.get(source.text_of(call.args[0]))
        if axis is not None:
            yield Change(ALONG_KEYS, (replace(source, call.args[0], axis),))


def _length(source: Source, call: ast.Call) -> Iterator[Change]:
    """A mask that has the size of something else: of the other axis, of another argument of the
    function, or of the longest sequence.
    """
    sides = _sides(source, call)
    for mask in mask_arguments(call) if sides is not None else ():
        turned = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
        plain = mask.operand if isinstance(mask, ast.UnaryOp) and turned else mask
        if is_simple(plain) and sides is not None:
            text = f"{source.text_of(plain)}[..., :{sides[0]}, :{sides[1]}]"
            yield Change("Cut the mask to the batch at hand.", (replace(source, plain, text),))
    made = [value_of(source, mask) for mask in mask_arguments(call)]
    for node in (call, *made):
        sizes = list(sizes_in(node))
        scope = source.function_of(node)
        names = [] if isinstance(scope, ast.Module) else [a.arg for a in scope.args.args]
        of = {x.id for x, _, _ in sizes if isinstance(x, ast.Name)}
        for other in names[1:] if len(of) == 1 and len(names) > 2 else ():
            edits = [replace(source, x, other) for x, _, _ in sizes if other not in of]
            if edits:
                yield Change(f"Give the mask the length of {other}.", tuple(edits))
        for axis in (0, 1):
            edits = [replace(source, at, str(1 - axis)) for _, at, n in sizes if n == axis]
            if edits and len(edits) == len(sizes):
                yield Change("Give the mask the length of the sequence.", tuple(edits))


def _sides(source: Source, call: ast.Call) -> tuple[str, str] | None:
    """How the numbers of queries and keys are written, at an attention or at its scores."""
    if called_name(call) in FILLING:
        scores = operand(source, call)
        of, axes = [scores, scores], (-2, -1)
    elif called_name(call) == "scaled_dot_product_attention":
        of, axes = list(call.args[:2]), (-2, -2)
    else:
        return None
    names = [source.text_of(x) for x in of if x is not None and is_simple(x)]
    if len(names) != 2:
        return None
    return f"{names[0]}.size({axes[0]})", f"{names[1]}.size({axes[1]})"
