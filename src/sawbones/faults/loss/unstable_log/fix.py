"""Keep the operand away from where the function has no finite value or slope."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.expressions import calls_near, in_brackets, operand, with_operand
from sawbones.fixing.recipes import Case, Change

LOGS = ("log", "log2", "log10")
ROOTS = ("sqrt", "rsqrt")
EDGES = ("acos", "asin", "arccos", "arcsin")


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, *LOGS, *ROOTS, *EDGES):
        given = operand(source, call)
        if given is None:
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        inner = in_brackets(source, given)
        if name in LOGS:
            text = f"{inner}.clamp_min(1e-7)"
        elif name in EDGES:
            text = f"{inner}.clamp(-1 + 1e-6, 1 - 1e-6)"
        else:
            method = given is getattr(call.func, "value", None)
            text = f"({inner} + 1e-8)" if method else f"{inner} + 1e-8"
        edit = with_operand(source, call, text)
        yield Change(f"Keep {name} away from where it has no finite value: {text}.", (edit,))
