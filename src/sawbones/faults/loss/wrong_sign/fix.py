"""Go backward from the loss itself, not from its negative."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.loop_parts import backward_calls, loss_of
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    if case.finding.params:
        return  # the scores are turned round, not the loss
    for source, call in backward_calls(case):
        loss = loss_of(call)
        if loss is None:
            continue
        for node in (loss, value_of(source, loss)):
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                text = source.text_of(node.operand)
                yield Change(
                    f"Go backward from the loss itself: {text}.", (replace(source, node, text),)
                )
        text = f"-{in_brackets(source, loss)}"
        turned = text if call.args else f"({text})"
        yield Change(f"Turn the sign of the loss: {text}.", (replace(source, loss, turned),))
        return
