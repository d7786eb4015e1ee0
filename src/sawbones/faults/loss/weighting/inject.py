"""The weight of the rare class is turned round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 4
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "BCEWithLogitsLoss"):
        weight = keyword_of(call, "pos_weight")
        if isinstance(weight, ast.BinOp) and isinstance(weight.op, ast.Div):
            text = f"{source.text_of(weight.right)} / {source.text_of(weight.left)}"
            yield (replace(source, weight, text),)
