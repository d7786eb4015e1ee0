"""A bool mask where torch takes one; -inf where it is added to the scores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.expressions import calls_near, in_brackets
from sawbones.fixing.recipes import Case, Change

MASKS = ("attn_mask", "mask", "src_mask", "key_padding_mask", "src_key_padding_mask")
ATTENTION = ("scaled_dot_product_attention", "masked_fill", "masked_fill_")


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, *ATTENTION):
        place = 3 if call.args[3:] else 0 if "masked" in ast.unparse(call.func) else -1
        for name in MASKS:
            given = keyword_of(call, name, place)
            if given is not None:
                text = f"{in_brackets(source, given)}.bool()"
                yield Change(f"Hand over a bool mask: {text}.", (replace(source, given, text),))
                break
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
                scores, mask = in_brackets(source, node.left), in_brackets(source, node.right)
                text = f'{scores}.masked_fill({mask} == 0, float("-inf"))'
                yield Change("Give keys to leave out -inf.", (replace(source, node, text),))
