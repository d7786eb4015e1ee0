"""Gradients that shrink layer by layer on their way to the first layers

## What it sees
The gradient of every weight matrix, per entry, in the order of the layers, on the first recorded
step. Fires when there are at least six, when the first third gets less than a thousandth of what
the last ones get, and when the gradient falls with depth (rank correlation over 0.8).

## Why it matters
The first layers do not learn; the deep model is a shallow one on top of random features.

## Looks like
Loss stays at chance although everything runs, and a shallower copy of the model learns.

## Example
    for layer in self.layers:
        x = torch.sigmoid(layer(x))

## Use instead
    for layer in self.layers:
        x = x + torch.relu(layer(x))

## Confirm it
The gradients themselves are the proof.

## False alarms
Embeddings get gradients for few rows and are left out, as are biases and the scales of
normalisations. Frozen layers have no gradient at all and are not counted. A pretrained or residual
network spreads its gradients within a factor of a hundred or so. A zero-initialised head shows only
in the first step and as zero, not as a slope.

## References
Hochreiter 1991; Bengio et al. 1994; He et al. 2016 on residual connections.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.schema import Evidence, Finding, Fix, Run, Site, Tensor
from sawbones.stats.loss_calls import places

NEEDS = ("tensor_statistics", "tensors")
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction", "model.dead-units")
EXPERIMENT = None
FALL = 1e-3
LAYERS = 6
RISE = 0.8
_SATURATING = ("Sigmoid", "Tanh", "Hardtanh", "Softsign", "LogSigmoid")


def check(run: Run) -> Iterator[Finding]:
    gradients = run.statistics.get("grad_l2")
    if gradients is None or not len(gradients):
        return
    rows = [row for row in gradients if np.isfinite(row).all()][:3]
    seen = [_by_layer(run, row) for row in rows]
    seen = [own for own in seen if len(own) >= LAYERS]
    if not seen:
        return
    falls = [_fall(own) for own in seen]
    if any(fall is None or fall > FALL for fall in falls):
        return
    own = seen[0]
    first, last = own[0], own[-1]
    text = (
        f"gradient per weight falls from {last[1]:.2g} in {last[0].name} to {first[1]:.2g} in {first[0].name}, over {len(own)} "
        f"layers: a factor of {(last[1] / max(first[1], 1e-45)) ** (1 / (len(own) - 1)):.3g} per layer"
    )
    yield Finding(
        "model.vanishing-gradients",
        "proven",
        0.95 if _is_gradual(own) else 0.9,
        "Gradients vanish on the way to the first layers",
        _where(run, [tensor for tensor, _ in own]),
        (
            Evidence(
                text,
                "tensor_statistics",
                (int(run.tensor_steps[0]),),
                float(first[1]),
                float(last[1]),
            ),
        ),
        Fix(
            "Add residual connections or normalisation between the layers, and an "
            "activation that does not saturate (ReLU, GELU)."
        ),
    )


def _by_layer(run: Run, row: npt.NDArray[np.float32]) -> list[tuple[Tensor, float]]:
    found = []
    for tensor in run.tensors:
        measured = tensor.index < len(row) and row[tensor.index] >= 0
        if (
            len(tensor.shape) >= 2
            and tensor.owner not in ("Embedding", "EmbeddingBag")
            and tensor.requires_grad
            and measured
        ):
            found.append((tensor, float(row[tensor.index]) / math.sqrt(tensor.numel)))
    return found


def _fall(own: list[tuple[Tensor, float]]) -> float | None:
    """First third against the last, None when it does not follow the order of the layers."""
    values = np.array([value for _, value in own])
    third = max(len(values) // 3, 1)
    late = float(np.median(values[-max(2, third // 2) :]))
    if late <= 0 or not np.any(values[:third] > 0):
        return None
    ranks = np.argsort(np.argsort(values)).astype(float)
    if float(np.corrcoef(ranks, np.arange(len(values)))[0, 1]) < RISE:
        return None
    return float(np.median(values[:third])) / late


def _is_gradual(own: list[tuple[Tensor, float]]) -> bool:
    """No single layer takes half of the whole fall: then it is depth, and units that no longer fire
    are a consequence.
    """
    logs = [math.log(value) for _, value in own if value > 0]
    steps = [after - before for before, after in itertools.pairwise(logs)]
    return len(logs) == len(own) and bool(steps) and max(steps) < 0.5 * (logs[-1] - logs[0])


def _where(run: Run, tensors: list[Tensor]) -> tuple[Site, ...]:
    modules = {m.path: m for m in run.modules}
    saturating = [m.built for m in run.modules if m.cls in _SATURATING]
    middle = tensors[len(tensors) // 2].name.rpartition(".")[0]
    forwards: list[Site | None] = []
    parts = middle.split(".")
    for count in range(len(parts), -1, -1):
        module = modules.get(".".join(parts[:count]))
        if module is not None and module.site is not None:
            forwards.append(module.site)
            if len(forwards) == 2:
                break
    ops = [
        op.site
        for deep in run.deep[:1]
        for op in deep.ops
        if op.module == middle or op.module == middle.rpartition(".")[0]
    ]
    layer = modules.get(middle)
    used = next((site for site in ops if site is not None), None)
    # The layers are mended where they are written, or where one is put behind the other.
    return places(
        *saturating[:1], used, *forwards[::-1], layer.built if layer is not None else None
    )
