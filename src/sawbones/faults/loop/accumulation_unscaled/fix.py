"""Divide the loss by the number of micro-batches of a step."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.loop_parts import backward_calls, loss_of
from sawbones.fixing.names import means_the_same
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    count = _count(case)
    for source, call in backward_calls(case):
        loss = loss_of(call)
        if loss is None or count < 2:
            continue
        number = _written(case, source, call, count) or str(count)
        text = source.text_of(loss)
        text = text if isinstance(loss, (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
        in_call = bool(call.args) or loss is not getattr(call.func, "value", None)
        divided = f"{text} / {number}" if in_call else f"({text} / {number})"
        yield Change(
            f"Divide the loss by the {count} micro-batches of a step: {text} / {number}.",
            (replace(source, loss, divided),),
        )
        return


def _count(case: Case) -> int:
    passes = Counter(e.step for e in case.run.of_kind("backward") if e.phase == "train")
    return Counter(passes.values()).most_common(1)[0][0] if passes else 0


def _written(case: Case, source: Source, call: ast.Call, count: int) -> str | None:
    """The name that stands for the number in the condition of the step: `(i + 1) % NAME == 0`."""
    optimizer = case.optimizer()
    if optimizer is None or optimizer.source is not source:
        return None
    for outer in source.around(optimizer.call):
        if not isinstance(outer, ast.If):
            continue
        for node in ast.walk(outer.test):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                if isinstance(node.right, ast.Constant) and node.right.value == count:
                    return str(count)
                if means_the_same(source, node.right, call):
                    return source.text_of(node.right)
    return None
