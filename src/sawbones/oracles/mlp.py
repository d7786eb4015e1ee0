"""The two-layer MLP, forward and backward, with every shape checked.
docs/explanation/derivations.md derives each line.

Shape suffixes: B examples, D inputs, H hidden units, K outputs.

    Z_BH = X_BD W1_DH + b1_H        A_BH = f(Z_BH)        Y_BK = A_BH W2_HK + b2_K

Weights are (in, out), as in the derivation; torch's nn.Linear stores (out, in), so pass its weight
transposed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    ShapeMismatch,
    as_float64,
    require_one_of,
    require_shape,
)

Activation = Literal["relu", "tanh"]

# At exactly 0 the ReLU takes slope 0, as in torch.
_FORWARD: dict[str, Callable[[Array], Array]] = {
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
}
_SLOPE: dict[str, Callable[[Array], Array]] = {
    "relu": lambda z: (z > 0.0).astype(np.float64),
    "tanh": lambda z: 1.0 - np.tanh(z) ** 2,
}


@dataclass(frozen=True)
class MlpForward:
    """The output and all that the backward pass needs."""

    output_BK: Array
    x_BD: Array
    pre_BH: Array
    hidden_BH: Array
    w1_DH: Array
    w2_HK: Array
    activation: Activation


@dataclass(frozen=True)
class MlpGradients:
    x_BD: Array
    w1_DH: Array
    b1_H: Array
    w2_HK: Array
    b2_K: Array


def mlp_forward(
    x: ArrayLike,
    w1: ArrayLike,
    b1: ArrayLike,
    w2: ArrayLike,
    b2: ArrayLike,
    *,
    activation: Activation = "relu",
) -> MlpForward:
    require_one_of("activation", activation, tuple(_FORWARD))
    x_BD = as_float64("x", x)
    if x_BD.ndim != 2:
        raise ShapeMismatch(f"x has shape {x_BD.shape}; expected 2 axes = (batch, inputs)")
    num_examples, num_inputs = x_BD.shape
    w1_DH, b1_H = _read_layer("w1", w1, "b1", b1, num_inputs)
    w2_HK, b2_K = _read_layer("w2", w2, "b2", b2, w1_DH.shape[1])
    num_hidden, num_outputs = w2_HK.shape

    pre_BH = x_BD @ w1_DH + b1_H
    hidden_BH = _FORWARD[activation](pre_BH)
    output_BK = hidden_BH @ w2_HK + b2_K
    require_shape("hidden", hidden_BH, (num_examples, num_hidden), "(batch, hidden)")
    require_shape("output", output_BK, (num_examples, num_outputs), "(batch, outputs)")
    return MlpForward(output_BK, x_BD, pre_BH, hidden_BH, w1_DH, w2_HK, activation)


def mlp_backward(forward: MlpForward, upstream: ArrayLike) -> MlpGradients:
    """upstream is d loss / d output, of the output's shape."""
    dy_BK = as_float64("upstream", upstream)
    require_shape(
        "upstream", dy_BK, forward.output_BK.shape, "(batch, outputs), the shape of the output"
    )

    dw2_HK = forward.hidden_BH.T @ dy_BK
    db2_K = dy_BK.sum(axis=0)
    da_BH = dy_BK @ forward.w2_HK.T
    dz_BH = da_BH * _SLOPE[forward.activation](forward.pre_BH)
    dw1_DH = forward.x_BD.T @ dz_BH
    db1_H = dz_BH.sum(axis=0)
    dx_BD = dz_BH @ forward.w1_DH.T

    # A gradient has the shape of what it is the gradient of: the one check that catches most
    # transposition mistakes.
    require_shape("gradient of w2", dw2_HK, forward.w2_HK.shape, "(hidden, outputs)")
    require_shape("gradient of b2", db2_K, forward.w2_HK.shape[1:], "(outputs,)")
    require_shape("gradient of hidden", dz_BH, forward.pre_BH.shape, "(batch, hidden)")
    require_shape("gradient of w1", dw1_DH, forward.w1_DH.shape, "(inputs, hidden)")
    require_shape("gradient of b1", db1_H, forward.w1_DH.shape[1:], "(hidden,)")
    require_shape("gradient of x", dx_BD, forward.x_BD.shape, "(batch, inputs)")
    return MlpGradients(x_BD=dx_BD, w1_DH=dw1_DH, b1_H=db1_H, w2_HK=dw2_HK, b2_K=db2_K)


def _read_layer(
    weight_name: str, weight: ArrayLike, bias_name: str, bias: ArrayLike, num_in: int
) -> tuple[Array, Array]:
    matrix = as_float64(weight_name, weight)
    if matrix.ndim != 2 or matrix.shape[0] != num_in:
        hint = ""
        if matrix.ndim == 2 and matrix.shape[1] == num_in:
            hint = f"; the transpose fits (nn.Linear stores (out, in)): pass {weight_name}.T"
        raise ShapeMismatch(
            f"{weight_name} has shape {matrix.shape}; expected ({num_in}, any) = (in, out){hint}"
        )
    vector = as_float64(bias_name, bias)
    require_shape(bias_name, vector, (matrix.shape[1],), f"(out,), the columns of {weight_name}")
    return matrix, vector
