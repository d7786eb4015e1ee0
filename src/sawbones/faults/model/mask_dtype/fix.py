"""A bool mask where torch takes one; -inf where it is added to the scores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace
from sawbones.fixing.expressions import FILLING, in_brackets, mask_arguments, operand
from sawbones.fixing.names import is_simple, spelled
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    places = list(case.places())
    handed = [row for source, site in places for row in _handed_over(source, site.line)]
    for text, edit in dict.fromkeys(handed):
        yield Change(f"Hand over a bool mask: {text}.", (edit,))
    for source, site in places:
        yield from _too_large(source, site.line)
    for source, site in places if not handed else ():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
                scores, mask = in_brackets(source, node.left), in_brackets(source, node.right)
                text = f'{scores}.masked_fill({mask} == 0, float("-inf"))'
                yield Change("Give keys to leave out -inf.", (replace(source, node, text),))


def _handed_over(source: Source, line: int) -> Iterator[tuple[str, Edit]]:
    for node in source.nodes_at(line):
        for given in mask_arguments(node) if isinstance(node, ast.Call) else ():
            text = f"{in_brackets(source, given)}.bool()"
            yield text, replace(source, given, text)


def _too_large(source: Source, line: int) -> Iterator[Change]:
    """A number that half precision does not hold."""
    for call in source.calls_at(line, *FILLING):
        value, scores = keyword_of(call, "value", 1), operand(source, call)
        number = value.operand if isinstance(value, ast.UnaryOp) else value
        if number is None or value is None or literal(number) is None:
            continue
        if scores is not None and is_simple(scores) and called_name(call) in FILLING:
            finfo, imports = spelled(source, "torch.finfo")
            text = f"{finfo}({source.text_of(scores)}.dtype).min"
            yield Change(
                f"Fill with what the dtype holds: {text}.", (*imports, replace(source, value, text))
            )
