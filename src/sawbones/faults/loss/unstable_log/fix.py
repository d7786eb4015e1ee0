"""Keep the operand away from where the function has no finite value or slope."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit
from sawbones.fixing.expressions import calls_near, in_brackets, operand, with_operand
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

LOGS = ("log", "log2", "log10")
ROOTS = ("sqrt", "rsqrt")
EDGES = ("acos", "asin", "arccos", "arcsin")


def fix(case: Case) -> Iterator[Change]:
    by_line: dict[tuple[str, int], list[tuple[str, Edit]]] = {}
    for source, call in calls_near(case, *LOGS, *ROOTS, *EDGES):
        given = operand(source, call)
        if given is not None:
            text = _bounded(source, call, given, "negative" in case.finding.title)
            row = (text, with_operand(source, call, text))
            by_line.setdefault((source.file, call.lineno), []).append(row)
    for rows in by_line.values():
        # Those of one line are of one formula: log(p) and log(1 - p).
        texts = ", ".join(text for text, _ in rows)
        yield Change(
            f"Keep it away from where it has no finite value: {texts}.",
            tuple(edit for _, edit in rows),
        )
        for text, edit in rows if len(rows) > 1 else ():
            yield Change(f"Keep it away from where it has no finite value: {text}.", (edit,))


def _bounded(source: Source, call: ast.Call, given: ast.expr, negative: bool) -> str:
    inner = in_brackets(source, given)
    if called_name(call) in LOGS:
        return f"{inner}.clamp_min(1e-7)"
    if called_name(call) in EDGES:
        clamped = isinstance(given, ast.Call) and called_name(given) in ("clamp", "clip")
        within = operand(source, given) if isinstance(given, ast.Call) and clamped else None
        inner = inner if within is None else in_brackets(source, within)
        return f"{inner}.clamp(-1 + 1e-6, 1 - 1e-6)"
    if negative:
        return f"{inner}.clamp_min(1e-6)"
    method = given is getattr(call.func, "value", None)
    return f"({inner} + 1e-8)" if method else f"{inner} + 1e-8"
