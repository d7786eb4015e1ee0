"""A loss as it was called on a deep step, and what could be measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sawbones.schema.site import Site
from sawbones.schema.value import Value


@dataclass(frozen=True, slots=True)
class TargetWeights:
    """How much each target really counts, from the gradient of the backward's root."""

    rows: int
    used: int
    sum: float
    fit: float  # 1 when the gradient is that of the loss named
    min: float
    max: float
    root: float
    # class -> targets, mean weight of those that count, targets that count
    by_class: Mapping[int, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PaddedTargets:
    """Positions whose input is padding, and what they weigh."""

    source: int
    pad_id: int
    same_vocabulary: bool
    rows: int
    counted: int
    weight_share: float
    target: int  # the commonest there
    target_share: float


@dataclass(frozen=True, slots=True)
class BlankTargets:
    """Positions at the ends of rows at which every feature of the input is zero."""

    rows: int
    counted: int
    weight_share: float
    target: float
    target_share: float
    elsewhere: float


@dataclass(frozen=True, slots=True)
class AlignedTargets:
    """Labels of a loss that aligns them by itself (CTC), within their lengths."""

    blank: int  # the output that stands for no label
    labels: int
    blanks: int  # labels that are the blank


@dataclass(frozen=True, slots=True)
class Stepwise:
    """Targets of a sequence that the model is given step by step."""

    sources: tuple[int, ...]  # token inputs, one for each step
    steps: int
    visible: bool | None  # a step's scores depend on its own token
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class LossFacts:
    """None where it could not be measured or does not apply."""

    num_classes: int | None = None
    class_dim: int | None = None
    ignore_index: int | None = None
    reduction: str | None = None  # as it was asked for; by hand, as it turned out
    smoothing: float | None = None
    has_weight: bool = False
    weight: tuple[float, ...] | None = None  # of the classes
    by_hand: bool = False
    main: bool = False  # the loss that carries the step
    reaches_root: bool | None = None  # the backward pass depends on it
    built_at: Site | None = None  # where the criterion was built
    # the input
    input_is_probability: bool | None = None  # rows are >= 0 and sum to 1
    input_is_log_probability: bool | None = None
    input_in_unit_interval: bool | None = None
    input_min: float | None = None
    input_max: float | None = None
    input_made_by: str | None = None  # the operator: softmax, sigmoid, log_softmax, ...
    input_made_at: Site | None = None
    input_built_at: Site | None = None  # where the module that made the input was built
    # the target
    target_min: float | None = None
    target_max: float | None = None
    target_counts: Mapping[int, int] = field(default_factory=dict)  # the 64 most frequent values
    target_num: int = 0
    target_num_values: int | None = None
    target_is_index: bool | None = None
    target_is_whole: bool | None = None
    target_row_sum: tuple[float, float] | None = None  # smallest and largest
    target_soft_at: Site | None = None
    target_ignored_share: float | None = None
    target_pad_share: float | None = None
    target_made_by: str | None = None
    target_requires_grad: bool = False
    # rows of several numbers: what the best answer that is the same for every row scores on average
    same_for_all: float | None = None
    broadcast: bool = False  # the shapes differ
    pad_id: int | None = None
    # the value
    accuracy: float | None = None
    per_sample: tuple[float, ...] | None = None  # loss of each example
    per_position: tuple[float, ...] | None = None
    effective_reduction: str | None = None  # "mean", "sum" or "other", from values
    mean_of_elements: float | None = None
    num_counted: int | None = None
    value_over_mean: float | None = None
    root_over_mean: float | None = None
    weights: TargetWeights | None = None
    padding: PaddedTargets | None = None
    blank: BlankTargets | None = None
    aligned: AlignedTargets | None = None
    # sequences
    sequence_dim: int | None = None  # dimension of time in the target
    sequence_shape: tuple[int, int] | None = None
    # of the target: it holds examples that were drawn in no order; for models that recur only
    drawn_dim: int | None = None
    # k -> "loss": mean loss when the targets are shifted by k against the outputs, "copies": share
    # of positions at which the input token k ahead of the position equals the target
    shift: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    copied_from: int | None = None  # the token input of which the targets are a copy
    copied_at: int | None = None  # at which shift
    # share of the places inside of texts whose target is ignored, though the input goes on with it
    left_out_inside: float | None = None
    packed_copies: float | None = None
    stepwise: Stepwise | None = None
    # share of an output's influence that comes from the very token it has to predict
    target_visible: float | None = None


@dataclass(frozen=True, slots=True)
class LossCall:
    """A loss function as it was called, with the properties of what it was given."""

    op: int
    fn: str
    site: Site | None
    module: str
    input: Value
    target: Value | None
    value: float | None
    facts: LossFacts = field(default_factory=LossFacts)
