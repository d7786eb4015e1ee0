"""Give prediction and target one shape: the last dimension of size 1 goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.schema import Run, Site
from sawbones.stats.loss_calls import Seen, reaching

Shape = tuple[int, ...]


def fix(case: Case) -> Iterator[Change]:
    for seen in reaching(case.run):
        site, number = seen.call.site, _in_loss(seen)
        source = case.source(site)
        if site is None or source is None or number is None:
            continue
        for call in source.calls_at(site.line):
            if len(call.args) > max(number, 1):
                yield from _without_last(source, call.args[number])
        yield from _where_returned(case, seen) if number == 0 else ()
        yield from _written_out(source, site.line, number)
        return
    for source, site in case.places():
        for number in _in_operators(case.run, site):
            yield from _written_out(source, site.line, number)


def _where_returned(case: Case, seen: Seen) -> Iterator[Change]:
    """Where the model returns it: an evaluation that compares in the same way is mended along."""
    made = seen.maker()
    found = case.statement(made.site) if made is not None else None
    if found is not None and isinstance(found[1], ast.Return) and found[1].value is not None:
        yield from _without_last(found[0], found[1].value)


def _written_out(source: Source, line: int, number: int) -> Iterator[Change]:
    """A loss that is written out, `(predicted - target) ** 2`, or weighed, `error * weight`."""
    for node in source.nodes_at(line):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Mult, ast.Div)):
            for given in (node.left, node.right)[:: -1 if number else 1]:
                yield from _without_last(source, given)


def _without_last(source: Source, given: ast.expr) -> Iterator[Change]:
    if isinstance(given, (ast.Starred, ast.Constant)):
        return
    text = f"{in_brackets(source, given)}.squeeze(-1)"
    yield Change(f"Give prediction and target one shape: {text}.", (replace(source, given, text),))


def _in_loss(seen: Seen) -> int | None:
    if seen.call.target is None:
        return None
    return _longer(seen.call.input.shape, seen.call.target.shape)


def _in_operators(run: Run, site: Site) -> Iterator[int]:
    for op in (op for deep in run.deep[:1] for op in deep.ops if op.site == site):
        if len(op.inputs) != 2 or not op.outputs or op.outputs[0].shape[-1:] == (1,):
            continue
        number = _longer(*(value.shape for value in op.inputs))
        if number is not None:
            yield number
            return


def _longer(*shapes: Shape) -> int | None:
    """Which of the two has the dimension of size 1 at its end."""
    for number, (own, other) in enumerate((shapes, shapes[::-1])):
        if own and own[-1] == 1 and len(own) == len(other) + 1:
            return number
    return None
