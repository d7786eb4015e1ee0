"""Give prediction and target one shape: the last dimension of size 1 goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.stats.loss_calls import Seen, reaching


def fix(case: Case) -> Iterator[Change]:
    for seen in reaching(case.run):
        site, number = seen.call.site, _longer(seen)
        source = case.source(site)
        if site is None or source is None or number is None:
            continue
        for call in source.calls_at(site.line):
            if len(call.args) < 2 or isinstance(call.args[number], ast.Starred):
                continue
            given = call.args[number]
            text = f"{in_brackets(source, given)}.squeeze(-1)"
            yield Change(
                f"Give prediction and target one shape: {text}.", (replace(source, given, text),)
            )
        yield from _difference(source, site.line, number)
        return


def _difference(source: Source, line: int, number: int) -> Iterator[Change]:
    """A loss that is written out: `(predicted - target) ** 2`."""
    for node in source.nodes_at(line):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            for given in (node.left, node.right)[:: -1 if number else 1]:
                text = f"{in_brackets(source, given)}.squeeze(-1)"
                yield Change(
                    f"Give prediction and target one shape: {text}.",
                    (replace(source, given, text),),
                )


def _longer(seen: Seen) -> int | None:
    """Which of the two has the dimension of size 1 at its end."""
    if seen.call.target is None:
        return None
    shapes = (seen.call.input.shape, seen.call.target.shape)
    for number, (own, other) in enumerate((shapes, shapes[::-1])):
        if own and own[-1] == 1 and len(own) == len(other) + 1:
            return number
    return None
