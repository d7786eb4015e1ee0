"""Which assertion keeps a fault out: the most direct property of each, or the fault's own check
where no property says it.

Read by `sawbones pin` and by the `test` of every finding. A fault that is missing here is pinned
by assert_free_of, or by running the script when it is a crash.
"""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.faults import Check, all_checks


@dataclass(frozen=True)
class Pin:
    """`assertion(run, arguments)`, on a run of as few steps as it needs to fail.

    `whole`: something that must happen once in a run, and may come late. `twice`: the script runs a
    second time.
    """

    assertion: str
    arguments: str = ""
    whole: bool = False
    twice: bool = False


PINS = {
    "data.nonfinite-input": Pin("assert_finite"),
    "model.attention-scale": Pin("assert_attention_scaled"),
    "model.causal-leak": Pin("assert_causal"),
    "model.cross-sample-leak": Pin("assert_batch_independent"),
    "model.detached-graph": Pin("assert_every_parameter_gets_gradient", whole=True),
    "model.frozen-params": Pin("assert_every_parameter_gets_gradient", whole=True),
    "model.mask-dtype": Pin("assert_masks"),
    "model.mask-polarity": Pin("assert_masks"),
    "model.over-masking": Pin("assert_no_row_masked"),
    "model.position-broadcast": Pin("assert_positions_matter"),
    "model.position-missing": Pin("assert_positions_matter"),
    "model.softmax-axis": Pin("assert_attention_normalised"),
    "model.unregistered-module": Pin("assert_modules_registered"),
    "model.unstable-norm": Pin("assert_finite"),
    "pipeline.mask-mismatch": Pin("assert_masks"),
    "loss.double-sigmoid": Pin("assert_loss_gets_logits"),
    "loss.double-softmax": Pin("assert_loss_gets_logits"),
    "loss.label-shift": Pin("assert_targets_shifted"),
    "loss.pad-not-ignored": Pin("assert_padding_ignored"),
    "loss.reduction-sum": Pin("assert_loss_is_mean"),
    "loss.silent-broadcast": Pin("assert_loss_shapes_match"),
    "loss.target-in-input": Pin("assert_targets_not_in_input"),
    "loss.unstable-log": Pin("assert_finite"),
    "optimizer.coupled-l2": Pin("assert_decoupled_decay"),
    "optimizer.decay-on-norm-bias": Pin("assert_decay_groups"),
    "optimizer.missing-params": Pin("assert_all_parameters_optimized", whole=True),
    "optimizer.stale-params": Pin("assert_all_parameters_optimized", whole=True),
    "loop.clip-after-step": Pin(
        "assert_event_order", '"backward", "clip", "step", optional=["clip"]'
    ),
    "loop.clip-before-unscale": Pin(
        "assert_event_order", '"backward", "unscale", "clip", "step", optional=["clip"]'
    ),
    "loop.half-weights": Pin("assert_float32_weights"),
    "loop.no-step": Pin("assert_event_order", '"backward", "step"'),
    "loop.no-zero-grad": Pin("assert_gradients_cleared"),
    "loop.nondeterminism": Pin("assert_deterministic", twice=True),
    "loop.resume-incomplete": Pin("assert_resumes_exactly"),
    "loop.scaler-misuse": Pin(
        "assert_event_order", '"scale", "backward", "scaler_step", "scaler_update"'
    ),
    "loop.scheduler-order": Pin(
        "assert_event_order", '"backward", "step", "schedule", optional=["schedule"]'
    ),
    "loop.train-in-eval-mode": Pin("assert_trains_in_train_mode"),
    "evaluation.eval-mode": Pin("assert_evaluates_in_eval_mode"),
    "evaluation.leak-contamination": Pin("assert_splits_disjoint"),
    "evaluation.wrong-split": Pin("assert_splits_disjoint"),
}


def ways() -> dict[str, str]:
    """Every fault that has a check -> how it is pinned: by an assertion, by running the script to
    the crash, or by its check.
    """
    return {check.fault: _way(check) for check in all_checks()}


def _way(check: Check) -> str:
    if "crash" in check.needs:
        return "running"
    return PINS[check.fault].assertion if check.fault in PINS else "assert_free_of"
