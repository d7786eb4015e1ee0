"""Where a log-softmax is meant, the log-softmax; other losses are for a person to choose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, rename_attribute, replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change, Decide
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change | Decide]:
    for source, call in calls_near(case, "softmax", "Softmax"):
        new = "log_softmax" if _name(call) == "softmax" else "LogSoftmax"
        yield Change(f"Give the loss log-probabilities: {new}.", (_renamed(source, call, new),))
    for source, call in calls_near(case, "binary_cross_entropy", "BCELoss"):
        scores = {
            "binary_cross_entropy": "binary_cross_entropy_with_logits",
            "BCELoss": "BCEWithLogitsLoss",
        }
        new = scores[_name(call)]
        yield Change(f"Use the loss for raw scores: {new}.", (_renamed(source, call, new),))
    yield Decide(
        "Choose the loss that fits the targets: cross_entropy for one class of several (one output "
        "per class), binary_cross_entropy_with_logits for yes or no, mse_loss for numbers. The "
        "model's last layer and how predictions are read change with it."
    )


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _renamed(source: Source, call: ast.Call, new: str) -> Edit:
    if isinstance(call.func, ast.Attribute):
        return rename_attribute(source, call.func, new)
    return replace(source, call.func, new)
