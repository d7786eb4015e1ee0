"""Gradients that shrink layer by layer on their way to the first layers

## What it sees
The gradient of every weight matrix, per entry, in the order of the layers, on the first recorded
step. Fires when there are at least six, when nothing up to the end of the first third (matrices,
biases, gains, embeddings) gets a thousandth of what the last ones get, and when the gradient falls
with depth (rank correlation over 0.8).

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
No experiment: the gradients, measured before training has changed much, make it likely.

## False alarms
Queries and keys of an attention that looks everywhere alike get next to nothing, however near they
are to the end: the gains, biases and embeddings around them show what arrives. Frozen layers have no gradient at all and are not counted. A pretrained or residual
network spreads its gradients within a factor of a hundred or so. A zero-initialised head shows only
in the first step and as zero, not as a slope.

## References
Hochreiter 1991; Bengio et al. 1994; He et al. 2016 on residual connections.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Finding, Fix, Run, Site, Tensor
from sawbones.trace.locate import locate

NEEDS = ("tensor_statistics", "tensors")
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction", "model.dead-units")
EXPERIMENT = None
MIN_LAYERS = 6  # in fewer a fall is no matter of depth
_SATURATING = ("Sigmoid", "Tanh", "Hardtanh", "Softsign", "LogSigmoid")


def check(run: Run) -> Iterator[Finding]:
    gradients = run.statistics["grad_l2"]
    rows = [row for row in gradients if np.isfinite(row).all()][:3]
    seen = [(own, row) for row in rows if len(own := _by_layer(run, row)) >= MIN_LAYERS]
    if not seen:
        raise NothingToJudge(f"no {MIN_LAYERS} layers of weights had a finite gradient")
    falls = [_fall(own, _arriving(run, row, own)) for own, row in seen]
    if not all(map(limits.GRADIENT_LEFT.kept_by, falls)):
        return
    own, _ = seen[0]
    first, last = own[0], own[-1]
    factor = last[1] / max(first[1], float(np.finfo(np.float32).smallest_subnormal))
    yield finding(
        "Gradients vanish on the way to the first layers",
        _where(run, [tensor for tensor, _ in own]),
        (
            compared(
                f"gradient per weight falls from {last[1]:.2g} in {last[0].name} to "
                f"{first[1]:.2g} in {first[0].name}, over {len(own)} layers: a factor of "
                f"{factor ** (1 / (len(own) - 1)):.3g} per layer",
                falls[0] if falls[0] is not None else math.nan,
                limits.GRADIENT_LEFT,
                below=True,
                signal="tensor_statistics",
                steps=(int(run.tensor_steps[0]),),
            ),
        ),
        Fix(
            "Add residual connections or normalisation between the layers, and an "
            "activation that does not saturate (ReLU, GELU)."
        ),
    )


def _by_layer(run: Run, row: npt.NDArray[np.float32]) -> list[tuple[Tensor, float]]:
    """Gradient per weight of every matrix, in the order of the layers."""
    layers = [
        t
        for t in run.tensors
        if len(t.shape) >= 2
        and t.owner not in ("Embedding", "EmbeddingBag")
        and t.requires_grad
        and t.index < len(row)
    ]
    return [
        (t, float(row[t.index]) / math.sqrt(t.numel)) for t in layers if float(row[t.index]) >= 0
    ]


def _arriving(run: Run, row: npt.NDArray[np.float32], own: list[tuple[Tensor, float]]) -> float:
    """Gradient per entry at the middle of the first third: the median of its matrices, or the most
    that a bias, a gain or an embedding gets up to there, which shows what arrives when the matrices
    beside it only route. What the whole model holds for itself may be used at its end.
    """
    first = own[: max(len(own) // 3, 1)]
    matrices = {t.index for t, _ in own}
    end = first[len(first) // 2][0].index
    others = (
        float(row[t.index]) / math.sqrt(t.numel)
        for t in run.tensors
        if t.index <= end and t.index not in matrices and "." in t.name and t.requires_grad
    )
    return max([float(np.median([value for _, value in first])), *others])


def _fall(own: list[tuple[Tensor, float]], arriving: float) -> float | None:
    """What arrives against the last third, None when gradients do not follow the order of the
    layers.
    """
    values = np.array([value for _, value in own])
    third = max(len(values) // 3, 1)
    late = float(np.median(values[-max(2, third // 2) :]))
    if late <= 0 or not np.any(values[:third] > 0):
        return None
    ranks = np.argsort(np.argsort(values)).astype(float)
    order = float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])
    if not limits.GRADIENT_ORDER.reached_by(order):
        return None
    return arriving / late


def _where(run: Run, tensors: list[Tensor]) -> tuple[Site, ...]:
    modules = {m.path: m for m in run.modules}
    saturating = [m.built for m in run.modules if m.cls in _SATURATING]
    middle = tensors[len(tensors) // 2].name.rpartition(".")[0]
    parts = middle.split(".")
    around = [modules.get(".".join(parts[:count])) for count in range(len(parts), -1, -1)]
    forwards = [m.site for m in around if m is not None and m.site is not None][:2]
    blocks = (middle, middle.rpartition(".")[0])
    ops = [op.site for deep in run.deep[:1] for op in deep.ops if op.module in blocks]
    layer = modules.get(middle)
    # The layers are mended where they are written, or where one is put behind the other.
    return locate(
        *saturating[:1],
        *locate(*ops)[:1],
        *forwards[::-1],
        layer.built if layer is not None else None,
    )
