"""Runs drawn by hand: a loss curve and what surrounds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema import (
    STEP_COLUMNS,
    Batch,
    DeepStep,
    Ending,
    Event,
    LossCall,
    Optimizer,
    Run,
    Site,
    Value,
)
from sawbones.schema.loss import LossFacts
from sawbones.schema.observed import Observed
from sawbones.schema.samples import ClassAnswers, Predictions, Samples
from sawbones.store.codec import decode_fields

LINE = Site("train.py", 12, "<module>", "loss.backward()")
FOUR_CLASSES = {0: 100, 1: 100, 2: 100, 3: 100}  # a constant answer scores log 4 = 1.386


def noisy(levels: npt.ArrayLike, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    exact = np.asarray(levels, np.float64)
    return exact + np.random.default_rng(seed).normal(0.0, noise, len(exact))


def falling(
    steps: int = 120, start: float = 1.4, end: float = 0.2, pace: float = 6.0
) -> np.ndarray:
    return noisy(end + (start - end) * np.exp(-pace * np.arange(steps) / steps))


def drawn(losses: npt.ArrayLike, **changes: Any) -> Run:
    """A run of a classifier with four classes. `columns`, `facts` (as a recording holds
    them), `evaluations`, `call` and
    `epoch` (steps of one) say more; everything else is a field of Run.
    """
    values = np.asarray(losses, np.float64)
    count = len(values)
    columns: Mapping[str, Any] = changes.pop("columns", {})
    call: Mapping[str, Any] | None = changes.pop("call", {})
    events = [
        Event(i, "backward", i, 0, "train", float(i), LINE, 0, {"value": float(v)})
        for i, v in enumerate(values)
    ]
    events += [_loss(i, float(v), "train") for i, v in enumerate(values)]
    for step, value in changes.pop("evaluations", ()):
        events.append(_forward(step))
        events += [_loss(step, value, "eval")] if value is not None else []
    steps = {name: np.zeros(count) for name in STEP_COLUMNS}
    steps |= {
        "step": np.arange(count, dtype=np.float64),
        "loss": values,
        "grad_norm": np.where(np.isfinite(values), 1.0, np.nan),
        "param_norm": 10.0 + 0.001 * np.arange(count),
        "update_norm": np.full(count, 0.01),
        "lr": np.full(count, 0.1),
        "step_ms": np.full(count, 10.0),
        "memory_mb": np.full(count, 500.0),
        "scale": np.full(count, np.nan),
    }
    steps |= {name: np.asarray(column, np.float64) for name, column in columns.items()}
    deep = (
        tuple(DeepStep(s, 0, losses=(_call(call),)) for s in (0, 1, 2, 5, 10) if s < count)
        if call is not None
        else ()
    )
    epoch = changes.pop("epoch", 0)
    batches = tuple(
        Batch(i, 0, "train", "loader:0", 0.0, (), epoch=i // epoch if epoch else 0)
        for i in range(count)
    )
    given = {
        "ending": Ending("finished", 0),
        "events": tuple(events),
        "steps": steps,
        "optimizers": (Optimizer(0, "SGD", {"lr": 0.1}, ({"lr": 0.1},)),),
        "deep": deep,
        "batches": batches,
    }
    facts = changes.pop("facts", {})
    return Run("train.py", (), "run", {}, **(given | changes | decode_fields(Observed, facts)))


def classes(table: Mapping[int, tuple[int, int, int]]) -> dict[str, Any]:
    """Answers of the last steps: class -> labels, hits, answers."""
    rows = {label: ClassAnswers(*row) for label, row in table.items()}
    return {"samples": Samples(Predictions(40, rows))}


def _call(changes: Mapping[str, Any]) -> LossCall:
    facts = {
        "main": True,
        "num_classes": 4,
        "target_counts": FOUR_CLASSES,
        "target_num_values": 4,
        "target_is_whole": True,
        "target_made_by": "stack",
        "root_over_mean": 1.0,
        **changes,
    }
    fn = facts.pop("fn", "cross_entropy")
    target = facts.pop("target", Value(2, (400,), "int64"))
    return LossCall(0, fn, LINE, "", Value(1, (400, 4), "float32"), target, 1.0, LossFacts(**facts))


def _forward(step: int) -> Event:
    return Event(0, "forward", step, 0, "eval", 0.0, LINE, 0, {})


def _loss(step: int, value: float, phase: str) -> Event:
    data = {"fn": "cross_entropy", "value": value, "reduction": "mean", "target_shape": [400]}
    return Event(0, "loss", step, 0, phase, 0.0, LINE, 0, data)
