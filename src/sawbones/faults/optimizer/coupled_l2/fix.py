"""The optimizer that decays weights beside the gradient: AdamW for Adam."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import rename_attribute, replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change, Decide

DECOUPLED = {"Adam": "AdamW"}


def fix(case: Case) -> Iterator[Change | Decide]:
    for source, call in calls_near(case, *DECOUPLED):
        decays = any(k.arg == "weight_decay" for k in call.keywords) or _in_groups(case)
        if not decays:
            continue
        if isinstance(call.func, ast.Attribute):
            new = DECOUPLED[call.func.attr]
            yield Change(f"Use {new}.", (rename_attribute(source, call.func, new),))
        elif isinstance(call.func, ast.Name):
            new, imports = spelled(source, f"torch.optim.{DECOUPLED[call.func.id]}")
            yield Change(f"Use {new}.", (*imports, replace(source, call.func, new)))
    yield Decide(
        "Decide the strength anew: with the squared weights out of the loss and a weight_decay in "
        "AdamW it no longer goes through the gradient, and the old number means something else."
    )


def _in_groups(case: Case) -> bool:
    return any(g.get("weight_decay") for o in case.run.optimizers for g in o.groups)
