"""Training mode while training, evaluation mode while evaluating."""

from __future__ import annotations

from sawbones.schema import Run
from sawbones.testing.catalogue import free_of


def assert_trains_in_train_mode(run: Run) -> None:
    """Every forward pass that leads to an optimizer step runs with the model in training mode."""
    free_of(run, "loop.train-in-eval-mode")


def assert_evaluates_in_eval_mode(run: Run) -> None:
    """Passes without gradients draw no dropout and use no batch statistics."""
    free_of(run, "evaluation.eval-mode")
