"""One number before backward: the mean."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.loop_parts import loss_of
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    crash = case.run.ending.crash
    many = case.finding.explanation is not None and "values" in case.finding.explanation.got
    if crash is None or not many:
        return
    for source, call in case.calls("backward"):
        loss = loss_of(call)
        if loss is not None:
            text = f"{in_brackets(source, loss)}.mean()"
            yield Change(
                f"Make it one number before backward: {text}.", (replace(source, loss, text),)
            )
            return
