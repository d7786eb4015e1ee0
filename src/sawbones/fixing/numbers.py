"""Numbers of the user's source: finding the one that a value came from, and writing another."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def short(value: float) -> str:
    """Two digits, as people write settings."""
    text = f"{value:.2g}"
    return text if "e" in text or "." in text else f"{text}.0"


def literal(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return None if isinstance(node.value, bool) else float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = literal(node.left), literal(node.right)
        return None if base is None or power is None else base**power
    return None


def numbers_at(source: Source, line: int) -> Iterator[tuple[ast.expr, float]]:
    for node in source.nodes_at(line):
        value = literal(node) if isinstance(node, ast.expr) else None
        if value is not None and isinstance(node, ast.expr):
            yield node, value


def rates(case: Case) -> list[float]:
    """Learning rates that the optimizers were made with, and the largest that was used."""
    found = [float(g["lr"]) for o in case.run.optimizers for g in o.groups if _number(g.get("lr"))]
    found += [float(o.defaults["lr"]) for o in case.run.optimizers if _number(o.defaults.get("lr"))]
    used = case.run.steps.get("lr")
    if used is not None and len(used):
        found.append(float(used.max()))
    return list(dict.fromkeys(found))


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def rescaled_rate(case: Case, factor: float) -> Iterator[Change]:
    """The learning rate times a factor: the number itself where it is found, else at the call."""
    known = rates(case)
    seen: set[Edit] = set()
    for source, site in case.places():
        for node, value in numbers_at(source, site.line):
            if not any(math.isclose(value, rate, rel_tol=1e-6) for rate in known):
                continue
            edit = replace(source, node, short(value * factor))
            if edit not in seen:
                seen.add(edit)
                yield Change(f"Set the learning rate to {short(value * factor)}.", (edit,))
    for optimizer in case.run.optimizers[:1]:
        made = case.made_optimizer(optimizer.index)
        given = keyword_of(made[1], "lr", 1) if made is not None else None
        if made is None or given is None:
            continue
        source = made[0]
        root = value_of(source, given)
        written = literal(root)
        if written is not None:
            edit = replace(source, root, short(written * factor))
            if edit not in seen:
                yield Change(f"Set the learning rate to {short(written * factor)}.", (edit,))
        else:
            text = source.text_of(given)
            text = (
                text if isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)) else f"({text})"
            )
            yield Change(
                f"Take {short(factor)} of the learning rate.",
                (replace(source, given, f"{text} * {short(factor)}"),),
            )
