"""What the loss is given, and what it counts."""

from __future__ import annotations

from typing import Any

from sawbones.schema import Run
from sawbones.testing.catalogue import free_of
from sawbones.testing.wording import broken


def assert_targets_shifted(
    inputs: Any, targets: Any = None, *, by: int = 1, ignore_index: int = -100
) -> None:
    """The target at position t is the input at t + `by`. Of two (batch, time) tensors of ids; or of
    the losses of a run, which predict the next token.
    """
    if isinstance(inputs, Run):
        free_of(inputs, "loss.label-shift")
    else:
        _shifted(inputs, targets, by, ignore_index)


def _shifted(inputs: Any, targets: Any, by: int, ignore_index: int) -> None:
    length = inputs.shape[1]
    given, asked = (
        inputs[:, max(by, 0) : length + min(by, 0)],
        targets[:, max(-by, 0) : length - max(by, 0)],
    )
    counted = asked != ignore_index
    wrong = ((given != asked) & counted).nonzero()
    if len(wrong):
        example, column = (int(n) for n in wrong[0])
        position = column + max(-by, 0)
        found = (
            f"example {example}, position {position}: target {int(asked[example, column])}, "
            f"and {len(wrong)} of "
        )
        found += f"{int(counted.sum())} targets in all"
        raise broken(found, f"{int(given[example, column])}, the input at position {position + by}")


def assert_targets_not_in_input(run: Run) -> None:
    """No input of the model holds, at the same position, the very token that the loss asks for."""
    free_of(run, "loss.target-in-input")


def assert_loss_gets_logits(run: Run) -> None:
    """Losses that take the softmax or sigmoid themselves get raw scores."""
    free_of(run, "loss.double-softmax", "loss.double-sigmoid")


def assert_padding_ignored(run: Run) -> None:
    """Padded positions carry no weight in the loss."""
    free_of(run, "loss.pad-not-ignored")


def assert_loss_is_mean(run: Run) -> None:
    """The loss is a mean over its targets: neither the batch size nor the length scales the
    step.
    """
    free_of(run, "loss.reduction-sum")


def assert_loss_shapes_match(run: Run) -> None:
    """Prediction and target have one shape: nothing is broadcast to pairs of everything."""
    free_of(run, "loss.silent-broadcast")
