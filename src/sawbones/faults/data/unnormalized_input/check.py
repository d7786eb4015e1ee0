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

from sawbones.schema import Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.data_lines import feeding_sites, loader_sites, marked_lines, training_loader
from sawbones.stats.given_lines import given_lines
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.series import fell

NEEDS = ("ops", "losses")
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
    {
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
    }
)
SCALE = 8.0


def check(run: Run) -> Iterator[Finding]:
    found = first_layer(run)
    if found is None:
        return
    op, given = found
    scale = math.hypot(given.mean or 0.0, given.std or 0.0)
    largest = max(abs(given.min or 0.0), abs(given.max or 0.0))
    if not (scale > SCALE and largest > 20.0):
        return
    stuck = not fell(run.losses, 0.5)
    text = (
        f"the first learned layer ({op.name}) gets values from {given.min:.4g} to {given.max:.4g}, mean {given.mean:.4g}, standard "
        f"deviation {given.std:.4g}"
    )
    yield Finding(
        "data.unnormalized-input",
        "likely" if stuck and scale > 20.0 else "suspected",
        0.85 if stuck else 0.6,
        "Inputs are not normalised",
        _where(run, given, op),
        (Evidence(text, "ops", (run.deep[0].step,), scale, 1.0),),
        Fix(
            "Standardise the inputs with mean and spread of the training set (pixels: "
            "divide by 255), for validation and use alike."
        ),
    )


def first_layer(run: Run) -> tuple[Op, Value] | None:
    """The first operator with learned weights, when data and not an embedding goes into it."""
    for deep in run.deep[:1]:
        for op in deep.ops:
            learned = any(v.requires_grad for v in op.inputs)
            if (
                op.name
                in (
                    "embedding",
                    "batch_norm",
                    "layer_norm",
                    "group_norm",
                    "instance_norm",
                    "rms_norm",
                )
                and learned
            ):
                return None
            if op.name in LAYERS and learned and op.inputs and not op.args.get("no_grad"):
                given = op.inputs[0]
                known = (
                    given.std is not None
                    and given.mean is not None
                    and given.min is not None
                    and given.max is not None
                )
                if (
                    given.requires_grad
                    or not given.dtype.startswith(("float", "bfloat"))
                    or not known
                    or given.nonfinite
                ):
                    return None
                return op, given
    return None


def _sides(shape: Sequence[int]) -> list[int]:
    """The sides of one sample, whether its channels stand first, last or nowhere."""
    return sorted(n for n in shape if n != 1)


def _where(run: Run, given: Value, op: Op) -> tuple[Site, ...]:
    """Where numbers became tensors of that width, the largest first, or the data set was made of
    them; then loader and call.
    """
    made, fetching = [], set(feeding_sites(run))
    for row in run.facts.get("data_ops") or ():
        shape = row.get("shape") or []
        wanted = _sides(given.shape[1:])
        same = bool(shape) and (
            list(shape[1:]) == list(given.shape[1:]) or (bool(wanted) and _sides(shape) == wanted)
        )
        if (
            same
            and row["op"] in ("tensor", "as_tensor", "float", "to", "stack", "__getitem__")
            and row["dtype"].startswith("float")
            and not (row["op"] == "stack" and as_site(row["site"]) in fetching)
        ):
            made.append((-math.prod(shape), row["op"] == "__getitem__", as_site(row["site"])))
    made.sort(key=lambda m: m[:2])
    ordered = [site for _, _, site in made]
    if made and made[0][1]:  # rows are picked from a table, which was made earlier
        ordered = [*given_lines(run, ordered[0])[:1], *ordered]
    kind = str((training_loader(run) or {}).get("dataset") or "").rsplit(".", 1)[-1]
    built = [s for s in marked_lines(run, "use") if kind and f"{kind}(" in s.code]
    return places(
        *(ordered[:1] or built[:1]),
        *loader_sites(run),
        *ordered[1:2],
        *feeding_sites(run)[:1],
        op.site,
    )[:4]
