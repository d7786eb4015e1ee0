"""Assertions for training code: each names the position, the example, the value, and the value that
was expected.

Most take a model and a batch, or a run that `observe` recorded of an unmodified script:

    assert_causal(model, tokens)

    run = observe("train.py", steps=3)
    assert_causal(run)
    assert_event_order(run, "zero_grad", "backward", "step")

Nothing but torch is needed for the first kind; the second starts the script in a child process and
a scratch folder.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "assert_all_parameters_optimized": "parameters",
    "assert_attention_normalised": "attention",
    "assert_attention_scaled": "attention",
    "assert_batch_independent": "properties",
    "assert_batches": "batches",
    "assert_causal": "properties",
    "assert_decay_groups": "parameters",
    "assert_decoupled_decay": "parameters",
    "assert_deterministic": "repeating",
    "assert_evaluates_in_eval_mode": "modes",
    "assert_event_order": "events",
    "assert_every_parameter_gets_gradient": "parameters",
    "assert_finite": "values",
    "assert_float32_weights": "parameters",
    "assert_free_of": "catalogue",
    "assert_gradients_cleared": "events",
    "assert_initial_loss": "learning",
    "assert_labels_in_range": "values",
    "assert_loss_gets_logits": "losses",
    "assert_loss_is_mean": "losses",
    "assert_loss_shapes_match": "losses",
    "assert_masks": "attention",
    "assert_mended": "captured",
    "assert_modules_registered": "parameters",
    "assert_no_row_masked": "attention",
    "assert_normalised": "values",
    "assert_overfits_one_batch": "learning",
    "assert_padding_ignored": "losses",
    "assert_padding_invariant": "properties",
    "assert_positions_matter": "properties",
    "assert_resumes_exactly": "repeating",
    "assert_runs": "values",
    "assert_same_losses": "repeating",
    "assert_splits_disjoint": "values",
    "assert_targets_not_in_input": "losses",
    "assert_targets_shifted": "losses",
    "assert_trains_in_train_mode": "modes",
    "observe": "observing",
}

__all__ = [
    "assert_all_parameters_optimized",
    "assert_attention_normalised",
    "assert_attention_scaled",
    "assert_batch_independent",
    "assert_batches",
    "assert_causal",
    "assert_decay_groups",
    "assert_decoupled_decay",
    "assert_deterministic",
    "assert_evaluates_in_eval_mode",
    "assert_event_order",
    "assert_every_parameter_gets_gradient",
    "assert_finite",
    "assert_float32_weights",
    "assert_free_of",
    "assert_gradients_cleared",
    "assert_initial_loss",
    "assert_labels_in_range",
    "assert_loss_gets_logits",
    "assert_loss_is_mean",
    "assert_loss_shapes_match",
    "assert_masks",
    "assert_mended",
    "assert_modules_registered",
    "assert_no_row_masked",
    "assert_normalised",
    "assert_overfits_one_batch",
    "assert_padding_ignored",
    "assert_padding_invariant",
    "assert_positions_matter",
    "assert_resumes_exactly",
    "assert_runs",
    "assert_same_losses",
    "assert_splits_disjoint",
    "assert_targets_not_in_input",
    "assert_targets_shifted",
    "assert_trains_in_train_mode",
    "observe",
]

if TYPE_CHECKING:
    from sawbones.testing.attention import (
        assert_attention_normalised,
        assert_attention_scaled,
        assert_masks,
        assert_no_row_masked,
    )
    from sawbones.testing.batches import assert_batches
    from sawbones.testing.captured import assert_mended
    from sawbones.testing.catalogue import assert_free_of
    from sawbones.testing.events import assert_event_order, assert_gradients_cleared
    from sawbones.testing.learning import assert_initial_loss, assert_overfits_one_batch
    from sawbones.testing.losses import (
        assert_loss_gets_logits,
        assert_loss_is_mean,
        assert_loss_shapes_match,
        assert_padding_ignored,
        assert_targets_not_in_input,
        assert_targets_shifted,
    )
    from sawbones.testing.modes import assert_evaluates_in_eval_mode, assert_trains_in_train_mode
    from sawbones.testing.observing import observe
    from sawbones.testing.parameters import (
        assert_all_parameters_optimized,
        assert_decay_groups,
        assert_decoupled_decay,
        assert_every_parameter_gets_gradient,
        assert_float32_weights,
        assert_modules_registered,
    )
    from sawbones.testing.properties import (
        assert_batch_independent,
        assert_causal,
        assert_padding_invariant,
        assert_positions_matter,
    )
    from sawbones.testing.repeating import (
        assert_deterministic,
        assert_resumes_exactly,
        assert_same_losses,
    )
    from sawbones.testing.values import (
        assert_finite,
        assert_labels_in_range,
        assert_normalised,
        assert_runs,
        assert_splits_disjoint,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"sawbones.testing has no {name!r}. There are: {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
