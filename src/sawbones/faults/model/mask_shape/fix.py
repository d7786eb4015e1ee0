"""The mask along the keys, repeated so that it stays with its example, and as long as what it
hides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import mask_arguments, sizes_in
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
    if called_name(call) == "scaled_dot_product_attention" and len(call.args) >= 2:
        query, key = call.args[:2]
        for mask in mask_arguments(call):
            if is_simple(mask) and is_simple(query) and is_simple(key):
                queries, keys = (f"{source.text_of(x)}.size(-2)" for x in (query, key))
                text = f"{source.text_of(mask)}[..., :{queries}, :{keys}]"
                yield Change("Cut the mask to the batch at hand.", (replace(source, mask, text),))
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
