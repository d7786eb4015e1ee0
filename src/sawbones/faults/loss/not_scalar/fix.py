"""One number before backward: the mean, where the loss is made, else where it is used."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.loop_parts import loss_of
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    crash = case.run.ending.crash
    many = case.finding.explanation is not None and "values" in case.finding.explanation.got
    if crash is None or not many:
        return
    for source, call in case.calls("backward"):
        loss = loss_of(call)
        if loss is None:
            continue
        # What is logged later is to be one number as well.
        for node in dict.fromkeys((value_of(source, loss), loss)):
            text = f"{in_brackets(source, node)}.mean()"
            yield Change(
                f"Make it one number before backward: {text}.", (replace(source, node, text),)
            )
        return
