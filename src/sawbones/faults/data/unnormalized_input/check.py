"""Inputs on a raw scale: pixels from 0 to 255, prices in thousands, years

## What it sees
On the first deep step, the values that enter the first learned layer. Fires when their root mean
square is above 8 and the largest is above 20, so that first activations and gradients are that much
too large. Earliest at step 0.

## Why it matters
Initialisation and learning rates are made for inputs around 1: large ones saturate or blow up the
first layer, and features on different scales make the loss a ravine.

## Looks like
A huge first loss, then a plateau at the level of guessing; or slow, shaky progress that no learning
rate cures.

## Example
    x = torch.tensor(images, dtype=torch.float32)

## Use instead
    x = torch.tensor(images, dtype=torch.float32) / 255.0

## Confirm it
The script runs again with the input of the first learned layer standardised, feature by feature.
Confirmed when the loss falls clearly further; refuted when it does not.

## False alarms
Integers that are looked up in an embedding are no inputs on a scale. Division, normalisation or
BatchNorm inside of the model come before the first learned weights and are seen through. Inputs of
moderate spread (standard deviations up to 8) train well enough.

## References
The second item of most checklists for debugging networks; raw uint8 images are the classic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import data as limits
from sawbones.schema import Finding, Fix, Op, Run, Site, Value
from sawbones.stats.series import fell
from sawbones.trace.feeding import feeding_sites, loader_sites, training_loader
from sawbones.trace.given_lines import given_lines
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import marked_lines

NEEDS = ("ops", "losses")
USES = ("made_tensors", "loaders", "source_lines")
EXPLAINS = (
    "model.dead-units",
    "model.bad-init",
    "loop.exploding-gradients",
    "optimizer.lr-too-high",
    "evaluation.collapsed-prediction",
    "model.vanishing-gradients",
    "loop.loss-spike",
    "optimizer.lr-too-low",
    "data.labels-misaligned",
)
EXPERIMENT = "input_standardised"
LAYERS = frozenset(
    [
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "addmm",
        "matmul",
        "conv_transpose2d",
        "bilinear",
    ]
)
# What these give to the next layer has a scale of its own, whatever the data has.
RESCALING = frozenset(
    ["embedding", "batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm"]
)
MAKING = ("tensor", "as_tensor", "float", "to", "stack", "__getitem__")


def check(run: Run) -> Iterator[Finding]:
    op = _first_layer(run)
    given = op.inputs[0] if op is not None else None
    if op is None or given is None or not _is_data(given):
        raise NothingToJudge("no learned layer is given real-valued data as it comes")
    mean, std, low, high = (x or 0 for x in (given.mean, given.std, given.min, given.max))
    scale = math.hypot(mean, std)
    largest = max(abs(low), abs(high))
    if not (limits.INPUT_SCALE.suspected_by(scale) and limits.LARGEST_INPUT.passed_by(largest)):
        return
    text = (
        f"the first learned layer ({op.name}) gets values from {low:.4g} to {high:.4g}, mean "
        f"{mean:.4g}, standard deviation {std:.4g}"
    )
    yield finding(
        "Inputs are not normalised",
        _where(run, given, op),
        (
            compared(
                text,
                scale,
                limits.INPUT_SCALE,
                expected=1,
                signal="ops",
                steps=(run.deep[0].step,),
            ),
        ),
        Fix(
            "Standardise the inputs with mean and spread of the training set (pixels: "
            "divide by 255), for validation and use alike."
        ),
        at_most="suspected" if fell(run.losses, limits.LOSS_FALL.value) else "likely",
    )


def _first_layer(run: Run) -> Op | None:
    """The first operator with learned weights, where it is a layer and no lookup or norm."""
    for op in run.deep[0].ops:
        learned = any(v.requires_grad for v in op.inputs)
        if learned and op.name in RESCALING:
            return None
        if learned and op.name in LAYERS and not op.args.get("no_grad"):
            return op
    return None


def _is_data(given: Value) -> bool:
    measured = None not in (given.mean, given.std, given.min, given.max)
    real = given.dtype.startswith(("float", "bfloat"))
    return measured and real and not given.requires_grad and not given.nonfinite


def _sides(shape: Sequence[int]) -> list[int]:
    """The sides of one sample, whether its channels stand first, last or nowhere."""
    return sorted(n for n in shape if n != 1)


def _where(run: Run, given: Value, op: Op) -> tuple[Site, ...]:
    """Where numbers became tensors of that width, the largest first, or the data set was made of
    them; then loader and call.
    """
    made, fetching = [], set(feeding_sites(run))
    wanted = _sides(given.shape[1:])
    for row in run.made_tensors:
        shape, site = row.shape, row.site
        if not shape or row.op not in MAKING or not row.dtype.startswith("float"):
            continue
        same = list(shape[1:]) == list(given.shape[1:]) or (wanted and _sides(shape) == wanted)
        if same and not (row.op == "stack" and site in fetching):
            made.append((-math.prod(shape), row.op == "__getitem__", site))
    made.sort(key=lambda m: m[:2])
    ordered = [site for _, _, site in made]
    if made and made[0][1]:  # rows are picked from a table, which was made earlier
        ordered = [*given_lines(run, ordered[0])[:1], *ordered]
    loader = training_loader(run)
    kind = loader.dataset if loader else ""
    built = [s for s in marked_lines(run, "use") if kind and f"{kind}(" in s.code]
    return locate(
        *(ordered[:1] or built[:1]),
        *loader_sites(run),
        *ordered[1:2],
        *feeding_sites(run)[:1],
        op,
    )[:4]
