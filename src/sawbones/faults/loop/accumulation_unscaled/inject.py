"""The accumulated loss is not divided by the number of micro-batches, where that does harm.

Clipping and adaptive optimizers take the scale of the gradient away again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, call_of, clips, loss_expressions, optimizers

LEVEL = 3
TRIAL = "one-large-batch"


def inject(source: Source) -> Iterator[Edits]:
    if clips(source) or any(called_name(call) != "SGD" for call in optimizers(source)):
        return
    for statement, start in loss_expressions(source):
        if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Div):
            call = call_of(statement)
            assert isinstance(call.func, ast.Attribute)
            begin = source.span(call)[0]
            inside = source.span(call.func)[1] - len(".backward")
            text = source.text_of(start.left)
            yield (Edit(source.file, begin, inside, text),)
