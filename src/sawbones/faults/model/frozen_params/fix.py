"""Let the parameters that the optimizer holds learn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace, set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change, Decide

SUMMARY = "Let them learn, as the optimizer holds them."
UNSAFE = "they may be frozen on purpose: then leave them out of the optimizer"


def fix(case: Case) -> Iterator[Change | Decide]:
    for source, call in calls_near(case, "requires_grad_"):
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False:
            yield Change(SUMMARY, (replace(source, call.args[0], "True"),), UNSAFE)
    for source, call in calls_near(case, "from_pretrained"):
        yield Change(SUMMARY, (set_keyword(source, call, "freeze", "False", 1),), UNSAFE)
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            named = [t for t in statement.targets if isinstance(t, ast.Attribute)]
            if any(t.attr == "requires_grad" for t in named) and statement.value.value is False:
                yield Change(SUMMARY, (replace(source, statement.value, "True"),), UNSAFE)
    yield Decide(
        "Decide whether these parameters are to learn (requires_grad True before the optimizer is "
        "made, which costs their gradients and may undo what they had learnt) or to stay as they "
        "are (leave them out of the optimizer, which changes nothing but says so)."
    )
