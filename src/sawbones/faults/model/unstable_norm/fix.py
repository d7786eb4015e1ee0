"""A small number under the root, or added to the divisor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.expressions import calls_near, operand, plus
from sawbones.fixing.recipes import Case, Change

NORMS = ("LayerNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "RMSNorm")


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, *NORMS, "layer_norm", "batch_norm", "group_norm"):
        given = keyword_of(call, "eps")
        if given is not None:
            yield Change("Give the normalisation an eps: 1e-5.", (replace(source, given, "1e-5"),))
    for source, call in calls_near(case, "sqrt", "rsqrt"):
        under = operand(source, call)
        if under is not None:
            edit = plus(source, under, "1e-5")
            yield Change("Add a small number under the root: 1e-5.", (edit,))
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                edit = plus(source, node.right, "1e-5")
                yield Change("Add a small number to the divisor: 1e-5.", (edit,))
