"""Every query keeps a key: a mask that hides too much is not put on top, or hides softly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import remove, replace
from sawbones.fixing.expressions import calls_near, in_brackets, operand
from sawbones.fixing.names import is_simple, root_names, spelled
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and _adds_to_itself(statement):
            yield Change(
                "Leave this mask out: with it some queries see no key.",
                (remove(source, statement),),
            )
    for source, call in calls_near(case, "masked_fill", "masked_fill_"):
        scores = operand(source, call)
        if scores is None or len(call.args) < 2 or not is_simple(scores):
            continue
        finfo, imports = spelled(source, "torch.finfo")
        text = f"{finfo}({in_brackets(source, scores)}.dtype).min"
        yield Change(
            "Hide by the smallest finite number: a query without keys stays finite.",
            (*imports, replace(source, call.args[-1], text)),
            unsafe="queries without a key then look at everything",
        )


def _adds_to_itself(statement: ast.Assign | ast.AugAssign) -> bool:
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, (ast.BitOr, ast.BitAnd))
    named = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    mixes = isinstance(statement.value, ast.BinOp)
    return mixes and bool(named & root_names(statement.value))
