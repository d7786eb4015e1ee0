"""One pure step function per update rule, and clipping by the global norm.

    params, state = adam(params, grads, State())          # State() is the state before the first
    step params, state = adam(params, grads, state, lr=3e-4)   # hyperparameters may change from
    step to step

params and grads are sequences of arrays with equal shapes. Nothing is changed in place. The
OPTIMIZERS table holds, next to each function, what docs/reference/optimizers.md says about it; the
page is generated from here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    ShapeMismatch,
    ValueOutOfRange,
    as_float64,
    require_range,
    require_shape,
)


@dataclass(frozen=True)
class State:
    """step counts the steps taken; slots holds one array per parameter under each name, zeros
    before the first step.
    """

    step: int = 0
    slots: Mapping[str, Sequence[Array]] = field(default_factory=dict)


Step: TypeAlias = tuple[list[Array], State]


@dataclass(frozen=True)
class Optimizer:
    name: str
    step: Callable[..., Step]
    update_rule: tuple[str, ...]
    torch_equivalent: str
    usual_lr: str
    stability_tip: str


OPTIMIZERS: dict[str, Optimizer] = {}


def _described(
    name: str,
    *,
    update_rule: tuple[str, ...],
    torch_equivalent: str,
    usual_lr: str,
    stability_tip: str,
) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    def keep(step: Callable[..., Step]) -> Callable[..., Step]:
        OPTIMIZERS[step.__name__] = Optimizer(
            name, step, update_rule, torch_equivalent, usual_lr, stability_tip
        )
        return step

    return keep


@_described(
    "SGD",
    update_rule=("p ← p − lr·(g + weight_decay·p)",),
    torch_equivalent="SGD(momentum=0)",
    usual_lr="1e-2 to 1",
    stability_tip=(
        "Diverges once lr exceeds 2 / (largest curvature): when the loss oscillates, divide "
        "lr by 10."
    ),
)
def sgd(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    after = [p - lr * (g + weight_decay * p) for p, g in zip(before, gradients, strict=True)]
    return after, State(state.step + 1)


@_described(
    "Momentum, torch's convention",
    update_rule=(
        "g ← g + weight_decay·p",
        "v ← momentum·v + (1 − dampening)·g  (first step: v ← g)",
        "p ← p − lr·v",
    ),
    torch_equivalent="SGD(momentum=0.9)",
    usual_lr="1e-3 to 1e-1",
    stability_tip="The long-run step is lr / (1 − momentum): momentum 0.9 needs lr about 10 times "
    "smaller than none. "
    "A change of lr acts on the whole past at once.",
)
def momentum_torch(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    momentum: float = 0.9,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    require_range("momentum", momentum, 0.0, 1.0, open_high=True)
    velocities = _accumulate(before, gradients, state, momentum, dampening, weight_decay)
    after = [p - lr * v for p, v in zip(before, velocities, strict=True)]
    return after, State(state.step + 1, {"velocity": velocities})


@_described(
    "Momentum, classic convention",
    update_rule=("g ← g + weight_decay·p", "v ← momentum·v − lr·g", "p ← p + v"),
    torch_equivalent="none; equals SGD(momentum=0.9) while lr is constant",
    usual_lr="1e-3 to 1e-1",
    stability_tip="lr is inside v, so after lr is lowered the old one fades over 1 / (1 − "
    "momentum) steps. "
    "Momentum buffers do not carry over between the two conventions: they differ by the "
    "factor −lr.",
)
def momentum_classic(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    require_range("momentum", momentum, 0.0, 1.0, open_high=True)
    old = _slot(state, "velocity", before)
    velocities = [
        momentum * v - lr * (g + weight_decay * p)
        for p, g, v in zip(before, gradients, old, strict=True)
    ]
    after = [p + v for p, v in zip(before, velocities, strict=True)]
    return after, State(state.step + 1, {"velocity": velocities})


@_described(
    "Nesterov",
    update_rule=("g ← g + weight_decay·p", "v ← momentum·v + g", "p ← p − lr·(g + momentum·v)"),
    torch_equivalent="SGD(momentum=0.9, nesterov=True)",
    usual_lr="1e-3 to 1e-1",
    stability_tip=(
        "Damps the oscillation of plain momentum along steep directions, not divergence from "
        "too high an lr."
    ),
)
def nesterov(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    require_range("momentum", momentum, 0.0, 1.0, open_low=True, open_high=True)
    velocities = _accumulate(before, gradients, state, momentum, 0.0, weight_decay)
    after = [
        p - lr * (g + weight_decay * p + momentum * v)
        for p, g, v in zip(before, gradients, velocities, strict=True)
    ]
    return after, State(state.step + 1, {"velocity": velocities})


@_described(
    "RMSProp",
    update_rule=(
        "g ← g + weight_decay·p",
        "s ← alpha·s + (1 − alpha)·g²",
        "p ← p − lr·g / (√s + eps)",
    ),
    torch_equivalent="RMSprop()",
    usual_lr="1e-4 to 1e-2",
    stability_tip="s starts at 0 and is not corrected, so the first step is lr / "
    "√(1 − alpha), 10 times "
    "lr by default: "
    "warm up. eps stands outside the root; code with it inside needs its square.",
)
def rmsprop(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-2,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    require_range("alpha", alpha, 0.0, 1.0, open_high=True)
    require_range("eps", eps, 0.0)
    old = _slot(state, "square_mean", before)
    decayed = [g + weight_decay * p for p, g in zip(before, gradients, strict=True)]
    squares = [alpha * s + (1.0 - alpha) * g**2 for s, g in zip(old, decayed, strict=True)]
    after = [
        p - lr * _divide(g, np.sqrt(s) + eps)
        for p, g, s in zip(before, decayed, squares, strict=True)
    ]
    return after, State(state.step + 1, {"square_mean": squares})


_ADAM_RULE = (
    "m ← beta1·m + (1 − beta1)·g",
    "s ← beta2·s + (1 − beta2)·g²",
    "m̂, ŝ = m / (1 − beta1ᵗ), s / (1 − beta2ᵗ)  (t from 1; without bias correction m̂, ŝ = m, s)",
    "p ← p − lr·m̂ / (√ŝ + eps)",
)


@_described(
    "Adam",
    update_rule=("g ← g + weight_decay·p", *_ADAM_RULE),
    torch_equivalent="Adam()",
    usual_lr="1e-4 to 3e-3",
    stability_tip="Each entry moves by about lr whatever its gradient's scale, "
    "so warm up. Late loss "
    "spikes: lower "
    "beta2 to 0.95. Without bias correction the first step is (1 − beta1) / √(1 − beta2) "
    "= 3.2 times lr.",
)
def adam(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    bias_correction: bool = True,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    decayed = [g + weight_decay * p for p, g in zip(before, gradients, strict=True)]
    return _adam_step(before, decayed, state, lr, beta1, beta2, eps, bias_correction)


@_described(
    "AdamW",
    update_rule=("p ← p − lr·weight_decay·p", *_ADAM_RULE),
    torch_equivalent="AdamW()",
    usual_lr="1e-4 to 1e-3; fine-tuning 1e-5 to 5e-5",
    stability_tip="Decay acts on the weight directly and scales with lr: give norms and biases "
    "weight_decay 0. Warm "
    "up, clip the global norm at 1, and lower beta2 to 0.95 for long runs with large batches.",
)
def adamw(
    params: Sequence[ArrayLike],
    grads: Sequence[ArrayLike],
    state: State,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    bias_correction: bool = True,
) -> Step:
    before, gradients = _read(params, grads, lr, weight_decay)
    shrunk = [p - lr * weight_decay * p for p in before]
    return _adam_step(shrunk, gradients, state, lr, beta1, beta2, eps, bias_correction)


def clip_by_global_norm(
    grads: Sequence[ArrayLike], max_norm: float, *, eps: float = 1e-6
) -> tuple[list[Array], float]:
    """The gradients times min(1, max_norm / (norm + eps)), and the norm of all of them together
    before that.

    torch adds the same eps, so the norm afterwards is slightly under max_norm. One NaN makes every
    gradient NaN, one Inf makes every finite gradient 0: look at the norm before using them.
    """
    require_range("max_norm", max_norm, 0.0)
    gradients = _sequence("grads", grads)
    with np.errstate(invalid="ignore", over="ignore"):
        norm = float(np.sqrt(sum(float((g**2).sum()) for g in gradients)))
        factor = float(np.minimum(1.0, max_norm / (norm + eps)))
        return [g * factor for g in gradients], norm


def _adam_step(
    params: list[Array],
    grads: list[Array],
    state: State,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    bias_correction: bool,
) -> Step:
    require_range("beta1", beta1, 0.0, 1.0, open_high=True)
    require_range("beta2", beta2, 0.0, 1.0, open_high=True)
    require_range("eps", eps, 0.0)
    old_means, old_squares = _slot(state, "mean", params), _slot(state, "square_mean", params)
    means = [beta1 * m + (1.0 - beta1) * g for m, g in zip(old_means, grads, strict=True)]
    squares = [beta2 * s + (1.0 - beta2) * g**2 for s, g in zip(old_squares, grads, strict=True)]
    t = state.step + 1
    # Both means start at 0 and are too small by these factors, which is all the correction undoes.
    mean_share, square_share = (1.0 - beta1**t, 1.0 - beta2**t) if bias_correction else (1.0, 1.0)
    after = [
        p - lr * _divide(m / mean_share, np.sqrt(s / square_share) + eps)
        for p, m, s in zip(params, means, squares, strict=True)
    ]
    return after, State(t, {"mean": means, "square_mean": squares})


def _accumulate(
    params: list[Array],
    grads: list[Array],
    state: State,
    momentum: float,
    dampening: float,
    weight_decay: float,
) -> list[Array]:
    decayed = [g + weight_decay * p for p, g in zip(params, grads, strict=True)]
    if state.step == 0:
        return decayed  # torch does not dampen the first gradient
    old = _slot(state, "velocity", params)
    return [momentum * v + (1.0 - dampening) * g for v, g in zip(old, decayed, strict=True)]


def _divide(numerator: Array, denominator: Array) -> Array:
    # eps = 0 with a gradient of 0 is 0 / 0: NaN, as in torch, without NumPy's warning.
    with np.errstate(divide="ignore", invalid="ignore"):
        return numerator / denominator


def _read(
    params: Sequence[ArrayLike], grads: Sequence[ArrayLike], lr: float, weight_decay: float
) -> tuple[list[Array], list[Array]]:
    require_range("lr", lr, 0.0)
    require_range("weight_decay", weight_decay, 0.0)
    before, gradients = _sequence("params", params), _sequence("grads", grads)
    if len(gradients) != len(before):
        raise ShapeMismatch(
            f"grads has {len(gradients)} arrays; expected {len(before)}, one per parameter"
        )
    for i, (p, g) in enumerate(zip(before, gradients, strict=True)):
        require_shape(f"grads[{i}]", g, p.shape, f"the shape of params[{i}]")
    return before, gradients


def _sequence(name: str, arrays: Sequence[ArrayLike]) -> list[Array]:
    if not isinstance(arrays, list | tuple):
        # A bare array would be taken apart into its rows, which changes the global norm's meaning
        # and every message.
        raise ShapeMismatch(
            f"{name} is a {type(arrays).__name__}; expected a list of arrays, so for one "
            f"array [{name}]"
        )
    return [as_float64(f"{name}[{i}]", a) for i, a in enumerate(arrays)]


def _slot(state: State, name: str, params: list[Array]) -> list[Array]:
    if state.step == 0:
        return [np.zeros_like(p) for p in params]
    if name not in state.slots:
        held = ", ".join(state.slots) or "nothing"
        raise ValueOutOfRange(
            f"state at step {state.step} holds {held}; expected {name}, so it is another "
            "optimizer's"
        )
    arrays = _sequence(f"state.slots[{name!r}]", state.slots[name])
    if len(arrays) != len(params):
        raise ShapeMismatch(
            f"state.slots[{name!r}] has {len(arrays)} arrays; expected {len(params)}, one "
            "per parameter"
        )
    for i, (held_array, p) in enumerate(zip(arrays, params, strict=True)):
        require_shape(
            f"state.slots[{name!r}][{i}]", held_array, p.shape, f"the shape of params[{i}]"
        )
    return arrays
