"""To be written by hand: backward pass of an MLP, softmax with cross-entropy, LayerNorm, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.oracles.arguments import Array
from sawbones.oracles.attention import attention, causal_mask, padding_mask
from sawbones.oracles.losses import cross_entropy, cross_entropy_gradient, softmax
from sawbones.oracles.mlp import mlp_backward, mlp_forward
from sawbones.oracles.norms import layer_norm, layer_norm_gradients
from sawbones.practise.writing.assignments import Assignment, Case, Terms

_MLP = '''"""The backward pass of a two-layer MLP.

    z = x w1 + b1,   a = relu(z),   y = a w2 + b2

x is (B, D), w1 (D, H), b1 (H,), w2 (H, K), b2 (K,); upstream is d loss / d y, (B, K). Give back a dict
with the output "y" and the gradients "w2", "b2", "a", "z", "w1", "b1", "x", each of the shape of what
it is the gradient of. Slope of the ReLU at 0: 0. NumPy only.
"""

import numpy as np


def mlp_gradients(x, w1, b1, w2, b2, upstream):
    raise NotImplementedError
'''


def _mlp_case(rng: np.random.Generator, number: int) -> Case:
    if number == 0:  # all sizes equal: a wrong transpose fits the shapes
        examples = inputs = hidden = outputs = 3
        about = "all sizes are 3, so that a wrong transpose fits"
    else:
        examples, inputs, hidden, outputs = (int(n) for n in rng.integers(1, 7, 4))
        about = f"batch {examples}, {inputs} inputs, {hidden} hidden units, {outputs} outputs"
    drawn = [rng.normal(size=s) for s in ((examples, inputs), (inputs, hidden), (hidden,))]
    if number == 1:
        drawn[0][:] = 0.0
        drawn[2][0] = 0.0  # z is exactly 0 there
        about += "; z is exactly 0 in one unit"
    drawn += [rng.normal(size=s) for s in ((hidden, outputs), (outputs,), (examples, outputs))]
    names = ("x", "w1", "b1", "w2", "b2", "upstream")
    return Case(about, dict(zip(names, drawn, strict=True)))


def _mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, upstream: Array) -> Terms:
    forward = mlp_forward(x, w1, b1, w2, b2)
    found = mlp_backward(forward, upstream)
    da = upstream @ w2.T
    return {
        "y": forward.output_BK,
        "w2": found.w2_HK,
        "b2": found.b2_K,
        "a": da,
        "z": da * (forward.pre_BH > 0),
        "w1": found.w1_DH,
        "b1": found.b1_H,
        "x": found.x_BD,
    }


def _mlp_mean(**given: Array) -> Terms:
    return _mlp(**{**given, "upstream": given["upstream"] / len(given["x"])})


def _mlp_sloped(slope: Any, given: dict[str, Array]) -> Terms:
    right = _mlp(**given)
    dz = right["a"] * slope
    below = {"w1": given["x"].T @ dz, "b1": dz.sum(axis=0), "x": dz @ given["w1"].T}
    return right | {"z": dz} | below


def _mlp_no_slope(**given: Array) -> Terms:
    return _mlp_sloped(1.0, given)


def _mlp_slope_at_zero(**given: Array) -> Terms:
    return _mlp_sloped(given["x"] @ given["w1"] + given["b1"] >= 0, given)


def _mlp_bias_mean(**given: Array) -> Terms:
    right = _mlp(**given)
    return right | {"b2": given["upstream"].mean(axis=0), "b1": right["z"].mean(axis=0)}


_CROSS_ENTROPY = '''"""Softmax and cross-entropy that do not overflow, and the gradient.

logits is (N, C), targets (N,) of integers; a target equal to ignore_index counts for nothing. Give back
a dict with "probabilities" (N, C), the mean "loss" over the targets that are not ignored (one number)
and the "gradient" of that loss by the logits (N, C). Logits can be as large as 1e4. NumPy only.
"""

import numpy as np


def cross_entropy(logits, targets, ignore_index):
    raise NotImplementedError
'''


def _entropy_case(rng: np.random.Generator, number: int) -> Case:
    examples, classes = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    logits = rng.normal(size=(examples, classes)) * 3
    targets = rng.integers(0, classes, examples)
    about = f"{examples} examples, {classes} classes"
    if number in (2, 4):
        logits *= 3000.0
        about += ", logits of several thousand"
    if number in (1, 4, 5):
        targets[0] = -100
        about += ", the first target is ignored"
    return Case(about, {"logits": logits, "targets": targets, "ignore_index": -100})


def _entropy(logits: Array, targets: Any, ignore_index: int) -> Terms:
    return {
        "probabilities": softmax(logits),
        "loss": cross_entropy(logits, targets, ignore_index=ignore_index),
        "gradient": cross_entropy_gradient(logits, targets, ignore_index=ignore_index),
    }


def _entropy_overflows(logits: Array, targets: Any, ignore_index: int) -> Terms:
    with np.errstate(all="ignore"):
        powers = np.exp(logits)
        p = powers / powers.sum(axis=-1, keepdims=True)
        kept = targets != ignore_index
        rows = np.arange(len(targets))
        loss = -np.log(p[rows, targets * kept])[kept].mean()
        gradient = p.copy()
        gradient[rows, targets * kept] -= 1
        gradient = np.where(kept[:, None], gradient, 0.0) / kept.sum()
    return {"probabilities": p, "loss": loss, "gradient": gradient}


def _entropy_log_of_softmax(logits: Array, targets: Any, ignore_index: int) -> Terms:
    kept = targets != ignore_index
    p = softmax(logits)
    with np.errstate(all="ignore"):
        picked = -np.log(p[np.arange(len(targets)), targets * kept])
    return {**_entropy(logits, targets, ignore_index), "loss": picked[kept].mean()}


def _entropy_all_targets(logits: Array, targets: Any, ignore_index: int) -> Terms:
    right = _entropy(logits, targets, ignore_index)
    share = (targets != ignore_index).mean()
    return right | {"loss": right["loss"] * share, "gradient": right["gradient"] * share}


def _entropy_summed(logits: Array, targets: Any, ignore_index: int) -> Terms:
    right = _entropy(logits, targets, ignore_index)
    kept = (targets != ignore_index).sum()
    return right | {"loss": right["loss"] * kept, "gradient": right["gradient"] * kept}


def _entropy_gradient_summed(logits: Array, targets: Any, ignore_index: int) -> Terms:
    right = _entropy(logits, targets, ignore_index)
    return right | {"gradient": right["gradient"] * (targets != ignore_index).sum()}


_LAYER_NORM = '''"""LayerNorm over the last axis, forward and backward.

x is (B, T, D), weight and bias (D,), upstream is d loss / d output, (B, T, D). Give back a dict with
"output" and the gradients "bias", "weight" and "x". The variance divides by D; eps stands under the
root. NumPy only.
"""

import numpy as np


def layer_norm(x, weight, bias, upstream, eps):
    raise NotImplementedError
'''


def _norm_case(rng: np.random.Generator, number: int) -> Case:
    shape = tuple(int(n) for n in rng.integers(3, 6, 3))  # of two columns no gradient is left
    x = rng.normal(size=shape)
    about = f"x is {shape}"
    if number == 1:
        x *= 1e-3
        about += ", values of 1e-3, so that eps counts"
    if number == 2:
        x += 1e3
        about += ", values around 1000"
    width = shape[-1]
    return Case(
        about,
        {
            "x": x,
            "weight": rng.normal(size=width),
            "bias": rng.normal(size=width),
            "upstream": rng.normal(size=shape),
            "eps": 1e-5,
        },
    )


def _norm(x: Array, weight: Array, bias: Array, upstream: Array, eps: float) -> Terms:
    shape = x.shape[-1:]
    found = layer_norm_gradients(x, shape, weight, upstream, eps=eps)
    output = layer_norm(x, shape, weight, bias, eps=eps)
    return {"output": output, "bias": found.bias, "weight": found.weight, "x": found.x}


def _norm_by(
    x: Array, weight: Array, bias: Array, upstream: Array, spread: Array, axes: Any = -1
) -> Terms:
    normal = (x - x.mean(axis=axes, keepdims=True)) / spread
    dn = upstream * weight
    dx = dn - dn.mean(axis=axes, keepdims=True)
    dx = dx - normal * (dn * normal).mean(axis=axes, keepdims=True)
    return {
        "output": normal * weight + bias,
        "bias": upstream.sum(axis=(0, 1)),
        "weight": (upstream * normal).sum(axis=(0, 1)),
        "x": dx / spread,
    }


def _norm_unbiased(x: Array, weight: Array, bias: Array, upstream: Array, eps: float) -> Terms:
    spread = np.sqrt(x.var(axis=-1, keepdims=True, ddof=1) + eps)
    return _norm_by(x, weight, bias, upstream, spread)


def _norm_eps_outside(x: Array, weight: Array, bias: Array, upstream: Array, eps: float) -> Terms:
    return _norm_by(x, weight, bias, upstream, x.std(axis=-1, keepdims=True) + eps)


def _norm_batch(x: Array, weight: Array, bias: Array, upstream: Array, eps: float) -> Terms:
    spread = np.sqrt(x.var(axis=(0, 1), keepdims=True) + eps)
    return _norm_by(x, weight, bias, upstream, spread, (0, 1))


def _norm_constant_spread(**given: Any) -> Terms:
    spread = np.sqrt(given["x"].var(axis=-1, keepdims=True) + given["eps"])
    dn = given["upstream"] * given["weight"]
    return {**_norm(**given), "x": (dn - dn.mean(axis=-1, keepdims=True)) / spread}


def _norm_no_statistics(**given: Any) -> Terms:
    spread = np.sqrt(given["x"].var(axis=-1, keepdims=True) + given["eps"])
    return {**_norm(**given), "x": given["upstream"] * given["weight"] / spread}


_ATTENTION = '''"""Scaled dot-product attention with masks.

queries is (B, H, Q, D), keys (B, H, K, D), values (B, H, K, V), lengths (B,): only the first lengths[b]
keys of an example are real. With causal=True, query i also sees no key after position i. Every query
sees at least one key. Give back a dict with "weights" (B, H, Q, K) and "output" (B, H, Q, V). Scores are
divided by the root of D. NumPy only.
"""

import numpy as np


def attention(queries, keys, values, lengths, causal):
    raise NotImplementedError
'''


def _attention_case(rng: np.random.Generator, number: int) -> Case:
    batch, heads, width, out = (int(n) for n in rng.integers(2, 5, 4))
    positions = int(rng.integers(3, 6))
    causal = number % 2 == 1
    lengths = rng.integers(1, positions + 1, batch)
    lengths[0] = positions - 1
    scale = 60.0 if number == 2 else 1.0
    about = f"lengths {lengths.tolist()} of {positions}" + (", causal" if causal else "")
    about += ", scores of several thousand" if number == 2 else ""
    drawn = {
        "queries": rng.normal(size=(batch, heads, positions, width)) * scale,
        "keys": rng.normal(size=(batch, heads, positions, width)) * scale,
        "values": rng.normal(size=(batch, heads, positions, out)),
    }
    return Case(about, {**drawn, "lengths": lengths, "causal": causal})


def _allowed(keys: Array, lengths: Any, causal: bool) -> Any:
    positions = keys.shape[-2]
    allowed = padding_mask(lengths, positions)
    return allowed & causal_mask(positions) if causal else allowed


def _attention(queries: Array, keys: Array, values: Array, lengths: Any, causal: bool) -> Terms:
    found = attention(queries, keys, values, _allowed(keys, lengths, causal))
    return {"weights": found.weights_QK, "output": found.output_QV}


def _weighted(weights: Array, values: Array) -> Terms:
    return {"weights": weights, "output": weights @ values}


def _attention_unscaled(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    found = attention(queries, keys, values, _allowed(keys, lengths, causal), scale=1.0)
    return {"weights": found.weights_QK, "output": found.output_QV}


def _attention_masked_after(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    weights = attention(queries, keys, values).weights_QK
    return _weighted(weights * _allowed(keys, lengths, causal), values)


def _attention_zero_scores(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])
    return _weighted(softmax(scores * _allowed(keys, lengths, causal)), values)


def _attention_padding_only(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    return _attention(queries, keys, values, lengths, False)


def _attention_causal_only(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    full = np.full(len(lengths), keys.shape[-2])
    return _attention(queries, keys, values, full, causal)


def _attention_query_axis(
    queries: Array, keys: Array, values: Array, lengths: Any, causal: bool
) -> Terms:
    scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])
    scores = np.where(_allowed(keys, lengths, causal), scores, -1e30)
    return _weighted(softmax(scores, axis=-2), values)


ASSIGNMENTS = (
    Assignment(
        "mlp-backward",
        15,
        "mlp_gradients",
        _MLP,
        ("y", "w2", "b2", "a", "z", "w1", "b1", "x"),
        _mlp_case,
        _mlp,
        {
            "gradients are divided by the batch size, although upstream holds that already": _mlp_mean,
            "the slope of the ReLU is left out": _mlp_no_slope,
            "the slope of the ReLU is 1 at 0": _mlp_slope_at_zero,
            "gradients of the biases are means over the batch, not sums": _mlp_bias_mean,
        },
    ),
    Assignment(
        "cross-entropy",
        12,
        "cross_entropy",
        _CROSS_ENTROPY,
        ("probabilities", "loss", "gradient"),
        _entropy_case,
        _entropy,
        {
            "the largest logit is not subtracted, so that exp overflows": _entropy_overflows,
            "the logarithm of a softmax that has rounded to 0": _entropy_log_of_softmax,
            "the mean also divides by the ignored targets": _entropy_all_targets,
            "a sum over the targets, not a mean": _entropy_summed,
            "the gradient is that of the sum, not of the mean": _entropy_gradient_summed,
        },
        absolute=1e-10,
    ),
    Assignment(
        "layer-norm",
        15,
        "layer_norm",
        _LAYER_NORM,
        ("output", "bias", "weight", "x"),
        _norm_case,
        _norm,
        {
            "the variance divides by D - 1": _norm_unbiased,
            "eps is added to the root, not under it": _norm_eps_outside,
            "mean and variance are taken over the batch": _norm_batch,
            "the gradient by x takes the variance for a constant": _norm_constant_spread,
            "the gradient by x takes mean and variance for constants": _norm_no_statistics,
        },
        1e-7,  # values around 1000 cost three digits twice
    ),
    Assignment(
        "attention",
        15,
        "attention",
        _ATTENTION,
        ("weights", "output"),
        _attention_case,
        _attention,
        {
            "scores are not divided by the root of D": _attention_unscaled,
            "weights are masked after the softmax and no longer sum to 1": _attention_masked_after,
            "masked scores are 0 instead of minus infinity": _attention_zero_scores,
            "the causal mask is missing": _attention_padding_only,
            "the padding mask is missing": _attention_causal_only,
            "the softmax runs over the queries": _attention_query_axis,
        },
        1e-8,
    ),
)
