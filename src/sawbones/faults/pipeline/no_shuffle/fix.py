"""Shuffle the training data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import EditRefused, before, keyword_of, remove, replace, set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.moves import loop_around
from sawbones.fixing.names import full_name, is_simple, root_names, spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

DRAWN = {"torch.arange": "torch.randperm", "numpy.arange": "numpy.random.permutation"}
ORDER = "A new order in every epoch: {}."


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "manual_seed", "seed"):
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call:
            text = source.text_of(call)
            yield Change(
                f"Do not begin the same order anew: leave {text} out.", (remove(source, statement),)
            )
    for source, call in calls_near(case, "DataLoader", "StatefulDataLoader"):
        if any(keyword_of(call, name) is not None for name in ("sampler", "batch_sampler")):
            continue
        try:
            edit = set_keyword(source, call, "shuffle", "True", 2)
        except EditRefused:
            continue
        yield Change("Shuffle the training data: shuffle=True.", (edit,))
    for source, call in calls_near(case, "SequentialSampler"):
        sampler, imports = spelled(source, "torch.utils.data.RandomSampler")
        edit = replace(source, call.func, sampler)
        yield Change("Draw the samples at random: RandomSampler.", (*imports, edit))
    for source, call in calls_near(case, "arange", "list"):
        yield from _order(source, call)
    for source, site in case.places():
        there = source.statement_at(site.line)
        if there is not None:
            yield from _slices(source, there)


def _order(source: Source, call: ast.Call) -> Iterator[Change]:
    """Row numbers that are counted up are drawn instead."""
    function = DRAWN.get(full_name(source, call.func))
    if function is not None and len(call.args) == 1:
        name, imports = spelled(source, function)
        yield Change(ORDER.format(name), (*imports, replace(source, call.func, name)))
    counted = call.args[0] if len(call.args) == 1 else None
    if isinstance(counted, ast.Call) and called_name(counted) == "range" and len(counted.args) == 1:
        name, imports = spelled(source, "random.sample")
        numbers, size = source.text_of(counted), source.text_of(counted.args[0])
        text = f"{name}({numbers}, {size})"
        yield Change(ORDER.format(text), (*imports, replace(source, call, text)))


def _slices(source: Source, statement: ast.stmt) -> Iterator[Change]:
    """`rows[i : i + size]` in a loop over i -> `rows[order[i : i + size]]`."""
    loop = loop_around(source, statement)
    counter = root_names(loop.target) if isinstance(loop, ast.For) else set()
    sliced = [
        node
        for node in (ast.walk(loop) if loop is not None else ())
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.slice, ast.Slice)
        and root_names(node.slice) & counter
        and is_simple(node.value)
    ]
    if loop is None or not sliced:
        return
    draw, imports = spelled(source, "torch.randperm")
    name = "order" if "order" not in root_names(source.tree) else "row_order"
    first = before(source, loop, f"{name} = {draw}(len({source.text_of(sliced[0].value)}))")
    inner = [replace(source, n.slice, f"{name}[{source.text_of(n.slice)}]") for n in sliced]
    yield Change(ORDER.format(draw), (*imports, first, *inner))
