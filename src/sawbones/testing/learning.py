"""Whether the pieces learn together: the loss at the start, and one batch learned by heart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sawbones.testing.wording import broken

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

Loss = Callable[[Any, Any], Any]  # loss(model, batch) -> scalar tensor


def assert_overfits_one_batch(
    model: nn.Module,
    batch: Any,
    loss: Loss,
    optimizer: Optimizer,
    *,
    steps: int = 100,
    below: float | None = None,
) -> None:
    """So many steps on one batch bring its loss under `below`, a third of its first value by
    default.

    The model is trained by this: hand over one made for the test. `loss(model, batch)` gives the
    scalar.
    """
    model.train()
    values: list[float] = []
    for step in range(steps):
        optimizer.zero_grad()
        value = loss(model, batch)
        if not math.isfinite(float(value.detach())):
            raise broken(
                f"the loss of one repeated batch is {float(value.detach())} at step {step}",
                "finite",
            )
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
        goal = below if below is not None else values[0] / 3
        if values[-1] < goal:
            return
    raise broken(
        f"one repeated batch: loss {values[0]:.4g} -> {min(values):.4g} in {steps} steps",
        f"under {goal:.4g}",
    )


def assert_initial_loss(
    model: nn.Module,
    batch: Any,
    loss: Loss,
    *,
    num_classes: int | None = None,
    expected: float | None = None,
    within: float = 0.3,
) -> None:
    """Before training the loss is that of guessing: log(num_classes), or the value given, up to a
    share `within`.
    """
    import torch

    if (num_classes is None) == (expected is None):
        raise TypeError(
            "give num_classes (the loss is then expected at its logarithm) or expected, "
            "one of the two"
        )
    goal = math.log(num_classes) if num_classes is not None else float(expected or 0.0)
    with torch.no_grad():
        value = float(loss(model, batch))
    if not abs(value - goal) <= within * max(abs(goal), 1e-12):
        name = f"log {num_classes} = {goal:.4g}" if num_classes is not None else f"{goal:.4g}"
        raise broken(f"the loss before training is {value:.4g}", f"{name}, up to {within:.0%}")
