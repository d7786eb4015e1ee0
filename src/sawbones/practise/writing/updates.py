"""To be written by hand: Adam, AdamW, and a check of gradients by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sawbones.oracles.arguments import Array
from sawbones.oracles.gradcheck import numerical_gradient, relative_errors
from sawbones.oracles.optimizers import State, adam, adamw
from sawbones.practise.writing.assignments import Assignment, Case, Terms

_ADAM = '''"""Several steps of Adam with bias correction.

parameter is an array; gradients is a list of arrays of that shape, one per step, the first one first.
Both moments begin at 0. Weight decay is the L2 term that is added to the gradient. Give back a dict
with "mean" and "square" (the two moments after the last step, uncorrected) and "parameter" after the
last step. Do not change what you are given. NumPy only.
"""

import numpy as np


def adam(parameter, gradients, lr, beta1, beta2, eps, weight_decay):
    raise NotImplementedError
'''
_ADAMW = _ADAM.replace("Several steps of Adam with bias correction.", "Several steps of AdamW.")
_ADAMW = _ADAMW.replace(
    "Weight decay is the L2 term that is added to the gradient.",
    "Weight decay is decoupled:\nit acts on the parameter, times lr, before the step.",
).replace("def adam(", "def adamw(")


def _update_case(rng: np.random.Generator, number: int) -> Case:
    shape = tuple(int(n) for n in rng.integers(1, 5, 2))
    steps = (1, 2, 3, 10, 40, 5)[number]
    scale = 1e-7 if number == 2 else 1.0
    about = f"{steps} steps" + (", gradients of 1e-7, so that eps counts" if number == 2 else "")
    gradients = [rng.normal(size=shape) * scale for _ in range(steps)]
    return Case(
        about,
        {
            "parameter": rng.normal(size=shape),
            "gradients": gradients,
            "lr": 0.01 * float(rng.integers(1, 5)),
            "beta1": 0.9,
            "beta2": 0.99 if number % 2 else 0.999,
            "eps": 1e-8,
            "weight_decay": 0.0 if number == 0 else 0.1,
        },
    )


def _run(step: Callable[..., Any], given: dict[str, Any]) -> Terms:
    settings = {n: v for n, v in given.items() if n not in ("parameter", "gradients")}
    parameters, state = [given["parameter"]], State()
    for gradient in given["gradients"]:
        parameters, state = step(parameters, [gradient], state, **settings)
    return {
        "mean": state.slots["mean"][0],
        "square": state.slots["square_mean"][0],
        "parameter": parameters[0],
    }


def _adam(**given: Any) -> Terms:
    return _run(adam, given)


def _adamw(**given: Any) -> Terms:
    return _run(adamw, given)


def _uncorrected(step: Callable[..., Any]) -> Callable[..., Terms]:
    def mistaken(**given: Any) -> Terms:
        return _run(step, {**given, "bias_correction": False})

    return mistaken


def _varied(decoupled: bool, first: int, root: Callable[[Array, float], Array]) -> Any:
    """Adam or AdamW with another way of counting steps or of adding eps."""

    def mistaken(
        parameter: Array,
        gradients: list[Array],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
    ) -> Terms:
        p, m, s = parameter.copy(), np.zeros_like(parameter), np.zeros_like(parameter)
        with np.errstate(all="ignore"):
            for t, gradient in enumerate(gradients, first):
                if decoupled:
                    p, g = p - lr * weight_decay * p, gradient
                else:
                    g = gradient + weight_decay * p
                m, s = beta1 * m + (1 - beta1) * g, beta2 * s + (1 - beta2) * g**2
                p = p - lr * (m / (1 - beta1**t)) / root(s / (1 - beta2**t), eps)
        return {"mean": m, "square": s, "parameter": p}

    return mistaken


def _outside(square: Array, eps: float) -> Array:
    return np.asarray(np.sqrt(square) + eps)


def _inside(square: Array, eps: float) -> Array:
    return np.asarray(np.sqrt(square + eps))


_CHECK = '''"""A gradient check by finite differences, good to seven digits.

function takes one array and gives one number; gradient is what somebody claims to be its gradient at
x. Give back a dict with the "numeric" gradient (of the shape of x) and the "error" (one number): the
largest of |gradient - numeric| / max(|gradient|, |numeric|, 1e-8) over the entries. Do not change x.
NumPy only.
"""

import numpy as np


def check_gradient(function, gradient, x):
    raise NotImplementedError
'''


def _cubes(x: Array) -> float:
    return float((x**3).sum() + x[0] * x[-1])


def _cubes_slope(x: Array) -> Array:
    slope = 3 * x**2
    slope[0] += x[-1]
    slope[-1] += x[0]
    return slope


def _waves(x: Array) -> float:
    return float(np.sin(3 * x).sum() + np.exp(x.mean()))


def _waves_slope(x: Array) -> Array:
    return np.asarray(3 * np.cos(3 * x) + np.exp(x.mean()) / x.size)


def _check_case(rng: np.random.Generator, number: int) -> Case:
    function, slope = ((_cubes, _cubes_slope), (_waves, _waves_slope))[number % 2]
    x = rng.uniform(0.5, 2.0, size=int(rng.integers(3, 6)))
    about = "the gradient is right"
    gradient = slope(x)
    if number >= 3:
        at = int(rng.integers(0, len(x)))
        gradient[at] *= -1 if number == 3 else 1.001
        about = f"one entry is wrong by {'its sign' if number == 3 else '0.1 %'}"
    return Case(about, {"function": function, "gradient": gradient, "x": x})


def _error(gradient: Array, numeric: Array) -> float:
    scale = np.maximum(np.maximum(np.abs(gradient), np.abs(numeric)), 1e-8)
    return float((np.abs(gradient - numeric) / scale).max())


def _check(function: Callable[[Array], float], gradient: Array, x: Array) -> Terms:
    numeric = numerical_gradient(function, [x])[0]
    assert relative_errors(gradient, numeric).shape == x.shape
    return {"numeric": numeric, "error": _error(gradient, numeric)}


def _differences(width: float, central: bool) -> Callable[..., Terms]:
    def mistaken(function: Callable[[Array], float], gradient: Array, x: Array) -> Terms:
        numeric = np.zeros_like(x)
        for at in range(x.size):
            up, down = x.copy(), x.copy()
            up[at] += width
            down[at] -= width if central else 0.0
            numeric[at] = (function(up) - function(down)) / (width * (1 + central))
        return {"numeric": numeric, "error": _error(gradient, numeric)}

    return mistaken


def _absolute(function: Callable[[Array], float], gradient: Array, x: Array) -> Terms:
    right = _check(function, gradient, x)
    return right | {"error": float(np.abs(gradient - right["numeric"]).max())}


ASSIGNMENTS = (
    Assignment(
        "adam",
        10,
        "adam",
        _ADAM,
        ("mean", "square", "parameter"),
        _update_case,
        _adam,
        {
            "no bias correction": _uncorrected(adam),
            "weight decay is decoupled, as in AdamW": _adamw,
            "eps is added under the root": _varied(False, 1, _inside),
            "steps are counted from 2": _varied(False, 2, _outside),
        },
        page="optimizer.wrong-update",
    ),
    Assignment(
        "adamw",
        10,
        "adamw",
        _ADAMW,
        ("mean", "square", "parameter"),
        _update_case,
        _adamw,
        {
            "no bias correction": _uncorrected(adamw),
            "weight decay is added to the gradient, as in Adam": _adam,
            "eps is added under the root": _varied(True, 1, _inside),
            "steps are counted from 2": _varied(True, 2, _outside),
        },
        page="optimizer.coupled-l2",
    ),
    Assignment(
        "gradient-check",
        12,
        "check_gradient",
        _CHECK,
        ("numeric", "error"),
        _check_case,
        _check,
        {
            "differences on one side only": _differences(1e-6, central=False),
            "a width of 1e-11, at which rounding is all that is left": _differences(1e-11, True),
            "a width of 0.01, at which curvature is seen": _differences(1e-2, True),
            "the error is absolute, not relative": _absolute,
        },
        1e-7,
        1e-7,
        "model.wrong-gradient",
    ),
)
