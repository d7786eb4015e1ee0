"""Update rules over a recorded series of gradients: the right ones, and the mistakes that are made
in writing them down.

A rule gives one direction per step; the parameter moves by -lr times the direction. Everything runs
on the entries that were recorded, in float64, from a state of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """One tensor: (steps, entries) of gradients, of values before the step and of what the step
    added; its place and shape.
    """

    place: int
    shape: tuple[int, ...]
    gradient: Array
    before: Array
    change: Array
    lr: Array  # one per step
    decay: float

    @property
    def steps(self) -> int:
        return len(self.change)


@dataclass(frozen=True)
class Rule:
    name: str
    right: bool
    says: str  # what the step does instead, for a wrong one
    direction: Callable[
        [Sequence[Moved], Sequence[Array], int], list[Array]
    ]  # tensors, their gradients, number of parameters
    rates: tuple[float, ...] = ()
    keeps: bool = True  # False: nothing is remembered from step to step
    scales: tuple[tuple[float, str], ...] = ()  # factors by which this rule is typically off


def _weighted(series: Array, keep: float, add: float) -> Array:
    out = np.zeros_like(series)
    state = np.zeros(series.shape[1:])
    for k, value in enumerate(series):
        state = keep * state + add * value
        out[k] = state
    return out


def _counts(moved: Moved) -> Array:
    return np.arange(1, moved.steps + 1, dtype=np.float64)[:, None]


def _ratio(m: Array, v: Array, eps: float, root: bool = True, inside: bool = False) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.sqrt(v + eps) if inside else np.sqrt(v) + eps if root else v + eps
        return np.asarray(np.nan_to_num(m / below, nan=0.0, posinf=1e30, neginf=-1e30))


def _each(
    act: Callable[[Moved, Array], Array],
) -> Callable[[Sequence[Moved], Sequence[Array], int], list[Array]]:
    return lambda tensors, gradients, number: [
        act(t, g) for t, g in zip(tensors, gradients, strict=True)
    ]


def _adam(
    b1: float,
    b2: float,
    eps: float,
    correct_m: Callable[[Array], Array] | None,
    correct_v: Callable[[Array], Array] | None,
    root: bool = True,
    inside: bool = False,
    keep_m: tuple[float, float] | None = None,
    keep_v: tuple[float, float] | None = None,
) -> Callable[[Moved, Array], Array]:
    def act(t: Moved, g: Array) -> Array:
        m = _weighted(g, *(keep_m or (b1, 1 - b1)))
        v = _weighted(g**2, *(keep_v or (b2, 1 - b2)))
        n = _counts(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            m = m / correct_m(n) if correct_m else m
            v = v / correct_v(n) if correct_v else v
        return _ratio(m, v, eps, root, inside)

    return act


def _power(rate: float) -> Callable[[Array], Array]:
    return lambda n: 1 - rate**n


def _written_back(b1: float, b2: float, eps: float) -> Callable[[Moved, Array], Array]:
    def act(t: Moved, g: Array) -> Array:
        m, v, out = np.zeros(g.shape[1:]), np.zeros(g.shape[1:]), np.zeros_like(g)
        for k, value in enumerate(g):
            m = (b1 * m + (1 - b1) * value) / (1 - b1 ** (k + 1))
            v = (b2 * v + (1 - b2) * value**2) / (1 - b2 ** (k + 1))
            out[k] = _ratio(m, v, eps)
        return out

    return act


def _stale(act: Callable[[Moved, Array], Array]) -> Callable[[Moved, Array], Array]:
    """The moments of the step before are used."""

    def late(t: Moved, g: Array) -> Array:
        return np.asarray(np.concatenate([np.zeros_like(g[:1]), act(t, g)[:-1]]))

    return late


def _one_counter(
    b1: float, b2: float, eps: float
) -> Callable[[Sequence[Moved], Sequence[Array], int], list[Array]]:
    """One step counter for all parameters, raised for each of them."""

    def act(tensors: Sequence[Moved], gradients: Sequence[Array], number: int) -> list[Array]:
        out = []
        for t, g in zip(tensors, gradients, strict=True):
            n = np.arange(t.steps, dtype=np.float64)[:, None] * number + t.place + 1
            m, v = _weighted(g, b1, 1 - b1) / (1 - b1**n), _weighted(g**2, b2, 1 - b2) / (1 - b2**n)
            out.append(_ratio(m, v, eps))
        return out

    return act


def _shared(
    act: Callable[[Moved, Array], Array],
) -> Callable[[Sequence[Moved], Sequence[Array], int], list[Array]]:
    """One state for all parameters of a shape: what one of them adds, the next one uses."""

    def run(tensors: Sequence[Moved], gradients: Sequence[Array], number: int) -> list[Array]:
        out: list[Array] = [np.zeros(0)] * len(tensors)
        for shape in {t.shape for t in tensors}:
            places = [i for i, t in enumerate(tensors) if t.shape == shape]
            steps = min(tensors[i].steps for i in places)
            woven = np.stack(
                [gradients[i][:steps] for i in places], axis=1
            )  # step, parameter, entry
            flat = woven.reshape(steps * len(places), -1)
            made = act(_like(tensors[places[0]], flat), flat).reshape(woven.shape)
            for number_in, i in enumerate(places):
                out[i] = made[:, number_in]
        return out

    return run


def _like(moved: Moved, gradient: Array) -> Moved:
    return Moved(moved.place, moved.shape, gradient, gradient, gradient, moved.lr, moved.decay)


def _lion(b1: float, b2: float) -> Callable[[Moved, Array], Array]:
    def act(t: Moved, g: Array) -> Array:
        before = np.concatenate([np.zeros_like(g[:1]), _weighted(g, b2, 1 - b2)[:-1]])
        return np.asarray(np.sign(b1 * before + (1 - b1) * g))

    return act


def adam_rules(b1: float, b2: float, eps: float) -> Iterator[Rule]:
    p1, p2 = _power(b1), _power(b2)
    rates = (b1, b2)
    factors = (
        (1 / (1 - b1), "the first moment adds the whole gradient, not (1 - beta1) of it"),
        (float(np.sqrt(1 - b2)), "the second moment adds the whole square, not (1 - beta2) of it"),
        (
            (1 - b2) / (1 - b1),
            "the first moment adds (1 - beta2) of the gradient, not (1 - beta1) of it",
        ),
        (
            float(np.sqrt((1 - b2) / (1 - b1))),
            "the second moment adds (1 - beta1) of the square, not (1 - beta2) of it",
        ),
    )
    yield Rule("Adam", True, "", _each(_adam(b1, b2, eps, p1, p2)), rates, scales=factors)
    yield Rule(
        "Adam, eps inside the root", True, "", _each(_adam(b1, b2, eps, p1, p2, inside=True)), rates
    )
    yield Rule("Lion", True, "", _each(_lion(b1, b2)), rates)
    wrong = {
        "no bias correction": (
            "the moments are not corrected for their start at zero",
            _adam(b1, b2, eps, None, None),
        ),
        "first moment uncorrected": (
            "only the second moment is corrected for its start at zero",
            _adam(b1, b2, eps, None, p2),
        ),
        "second moment uncorrected": (
            "only the first moment is corrected for its start at zero",
            _adam(b1, b2, eps, p1, None),
        ),
        "count one ahead": (
            "the bias correction counts one step too many",
            _adam(b1, b2, eps, lambda n: 1 - b1 ** (n + 1), lambda n: 1 - b2 ** (n + 1)),
        ),
        "count stands still": (
            "the bias correction always counts step 1",
            _adam(b1, b2, eps, lambda n: 1 - b1 ** (0 * n + 1), lambda n: 1 - b2 ** (0 * n + 1)),
        ),
        "product for power": (
            "the bias correction takes beta times t, not beta to the power of t",
            _adam(b1, b2, eps, lambda n: 1 - b1 * n, lambda n: 1 - b2 * n),
        ),
        "power of the difference": (
            "the bias correction takes (1 - beta) to the power of t, not 1 - beta to the power of t",
            _adam(b1, b2, eps, lambda n: (1 - b1) ** n, lambda n: (1 - b2) ** n),
        ),
        "correction multiplied": (
            "the bias correction is multiplied, not divided",
            _adam(b1, b2, eps, lambda n: 1 / (1 - b1**n), lambda n: 1 / (1 - b2**n)),
        ),
        "first correction by beta2": (
            "the first moment is corrected by beta2, not by beta1",
            _adam(b1, b2, eps, p2, p2),
        ),
        "second correction by beta1": (
            "the second moment is corrected by beta1, not by beta2",
            _adam(b1, b2, eps, p1, p1),
        ),
        "corrections exchanged": (
            "the bias corrections of the two moments are exchanged",
            _adam(b1, b2, eps, p2, p1),
        ),
        "first moment at beta2": (
            "the first moment fades with beta2, not with beta1",
            _adam(b2, b2, eps, p1, p2),
        ),
        "second moment at beta1": (
            "the second moment fades with beta1, not with beta2",
            _adam(b1, b1, eps, p1, p2),
        ),
        "correction kept": (
            "the corrected moments are written back into the state",
            _written_back(b1, b2, eps),
        ),
        "no root": (
            "the root of the second moment is missing",
            _adam(b1, b2, eps, p1, p2, root=False),
        ),
        "no root, no correction": (
            "the root of the second moment and the bias correction are missing",
            _adam(b1, b2, eps, None, None, root=False),
        ),
        "root before correction": (
            "the second moment is corrected after its root was taken",
            _adam(b1, b2, eps, p1, lambda n: (1 - b2**n) ** 2),
        ),
        "rates exchanged": ("beta1 and beta2 are exchanged", _adam(b2, b1, eps, p2, p1)),
        "first weights exchanged": (
            "the first moment keeps (1 - beta1) and adds beta1",
            _adam(b1, b2, eps, p1, p2, keep_m=(1 - b1, b1)),
        ),
        "second weights exchanged": (
            "the second moment keeps (1 - beta2) and adds beta2",
            _adam(b1, b2, eps, p1, p2, keep_v=(1 - b2, b2)),
        ),
        "moments of the step before": (
            "the moments are used before they are updated",
            _stale(_adam(b1, b2, eps, p1, p2)),
        ),
        "first moment forgotten": (
            "the first moment is not kept from step to step",
            _adam(b1, b2, eps, None, p2, keep_m=(0.0, 1.0)),
        ),
        "second moment forgotten": (
            "the second moment is not kept from step to step",
            _adam(b1, b2, eps, p1, None, keep_v=(0.0, 1.0)),
        ),
        "state forgotten": (
            "no moment is kept from step to step",
            _adam(b1, b2, eps, None, None, keep_m=(0.0, 1.0), keep_v=(0.0, 1.0)),
        ),
    }
    for name, (says, act) in wrong.items():
        yield Rule(f"Adam, {name}", False, says, _each(act), rates, keeps="forgotten" not in name)
    yield Rule(
        "Adam, one counter",
        False,
        "one step counter is raised for every parameter",
        _one_counter(*rates, eps),
        rates,
    )
    for number, correct in ((1, (p1, p2)), (2, (None, None))):
        shared = _shared(_adam(b1, b2, eps, *correct))
        yield Rule(
            f"Adam, shared state {number}",
            False,
            "parameters of one shape share their moments",
            shared,
            rates,
        )


def _first_then(factor: float) -> Callable[[Moved, Array], Array]:
    """The gradient as it is on the first step, times a factor on all others."""
    return lambda t, g: np.asarray(np.concatenate([g[:1], factor * g[1:]]))


def momentum_rules(mu: float) -> Iterator[Rule]:
    rates = (mu,)

    def plain(t: Moved, g: Array) -> Array:
        return _weighted(g, mu, 1.0)

    def nesterov(t: Moved, g: Array) -> Array:
        return np.asarray(g + mu * _weighted(g, mu, 1.0))

    def dampened(t: Moved, g: Array) -> Array:
        out = _weighted(g, mu, 1 - mu)
        first = g[0] - (1 - mu) * g[0]
        return np.asarray(
            out + first * mu ** (_counts(t) - 1)
        )  # torch does not dampen the first gradient

    times = (
        ((mu, "the gradient itself is multiplied by the momentum"),)
        if abs(mu - (1 - mu)) > 0.02
        else ()
    )
    yield Rule("momentum", True, "", _each(plain), rates, scales=times)
    yield Rule("momentum as a mean", True, "", _each(lambda t, g: _weighted(g, mu, 1 - mu)), rates)
    yield Rule("momentum, dampened", True, "", _each(dampened), rates)
    yield Rule("Nesterov", True, "", _each(nesterov), rates)
    yield Rule(
        "Nesterov as a mean",
        True,
        "",
        _each(lambda t, g: (1 - mu) * g + mu * _weighted(g, mu, 1 - mu)),
        rates,
    )
    if mu > 0.6:
        yield Rule(
            "momentum, weights exchanged",
            False,
            "the buffer keeps (1 - momentum) of itself and not momentum",
            _each(lambda t, g: _weighted(g, 1 - mu, mu)),
            rates,
        )
    yield Rule(
        "momentum, never fades",
        False,
        "the buffer adds up all gradients and never fades",
        _each(lambda t, g: g.cumsum(0)),
        rates,
    )
    yield Rule(
        "momentum, against itself",
        False,
        "the buffer is subtracted where it should be added",
        _each(lambda t, g: _weighted(g, -mu, 1.0)),
        rates,
    )
    yield Rule(
        "momentum, buffer forgotten",
        False,
        "the buffer is not kept from step to step",
        _each(lambda t, g: g),
        rates,
        False,
    )
    own = "the buffer is the gradient's own tensor and not a copy: it remembers nothing"
    for kind, later in (
        ("sum", 2 * mu),
        ("mean", mu * (2 - mu)),
    ):  # the gradient fades with it, then is added to itself
        yield Rule(
            f"momentum, buffer is the gradient ({kind})",
            False,
            own,
            _each(_first_then(later)),
            rates,
            False,
        )
    yield Rule(
        "momentum, step before",
        False,
        "the buffer is used before it is updated",
        _each(_stale(plain)),
        rates,
    )
    yield Rule(
        "Nesterov, terms exchanged",
        False,
        "Nesterov's step adds momentum times the gradient to the buffer, not the other way",
        _each(lambda t, g: _weighted(g, mu, 1.0) + mu * g),
        rates,
    )
    yield Rule(
        "momentum, shared buffer",
        False,
        "parameters of one shape share their buffer",
        _shared(plain),
        rates,
    )


def rms_rules(alpha: float, eps: float) -> Iterator[Rule]:
    rates = (alpha,)
    fits = (
        (
            float(np.sqrt(1 - alpha)),
            "the mean of squares adds the whole square, not (1 - alpha) of it",
        ),
    )

    def rms(
        root: bool = True,
        inside: bool = False,
        keep: tuple[float, float] | None = None,
        corrected: bool = False,
    ) -> Callable[[Moved, Array], Array]:
        def act(t: Moved, g: Array) -> Array:
            v = _weighted(g**2, *(keep or (alpha, 1 - alpha)))
            return _ratio(g, v / (1 - alpha ** _counts(t)) if corrected else v, eps, root, inside)

        return act

    yield Rule("RMSProp", True, "", _each(rms()), rates, scales=fits)
    yield Rule("RMSProp, eps inside the root", True, "", _each(rms(inside=True)), rates)
    yield Rule("RMSProp, corrected", True, "", _each(rms(corrected=True)), rates)
    yield Rule(
        "RMSProp, no root",
        False,
        "the root of the mean of squares is missing",
        _each(rms(root=False)),
        rates,
    )
    yield Rule(
        "RMSProp, weights exchanged",
        False,
        "the mean of squares keeps (1 - alpha) of itself and not alpha",
        _each(rms(keep=(1 - alpha, alpha))),
        rates,
    )
    yield Rule(
        "RMSProp, shared",
        False,
        "parameters of one shape share their mean of squares",
        _shared(rms()),
        rates,
    )


def plain_rules(eps: float) -> Iterator[Rule]:
    def adagrad(t: Moved, g: Array) -> Array:
        return _ratio(g, (g**2).cumsum(0), eps)

    yield Rule("SGD", True, "", _each(lambda t, g: g), keeps=False)
    yield Rule("Adagrad", True, "", _each(adagrad))
    yield Rule("sign of the gradient", True, "", _each(lambda t, g: np.sign(g)), keeps=False)
    yield Rule(
        "Adagrad, no root",
        False,
        "the root of the sum of squares is missing",
        _each(lambda t, g: _ratio(g, (g**2).cumsum(0), eps, root=False)),
    )


@dataclass(frozen=True)
class Fit:
    rule: Rule
    decay: str  # "", "coupled", "decoupled", "unscaled", "growing"
    off: float  # what is left of the change when the rule is taken away, as a share of it
    scale: float  # by which the rule has to be multiplied


def fits(tensors: Sequence[Moved], rules: Sequence[Rule], number: int) -> list[Fit]:
    """Every rule against what was recorded, best first; one common factor is free."""
    found = []
    decays = (
        ("", "coupled", "decoupled", "unscaled", "growing")
        if any(t.decay > 0 for t in tensors)
        else ("",)
    )
    for decay in decays:
        gradients = [
            t.gradient + t.decay * t.before if decay == "coupled" else t.gradient for t in tensors
        ]
        changes = [t.change + _shrink(t, decay) for t in tensors]
        for rule in rules:
            with np.errstate(all="ignore"):
                directions = rule.direction(tensors, gradients, number)
            found.append(Fit(rule, decay, *_compare(tensors, changes, directions)))
    return sorted(found, key=lambda f: f.off)


def _shrink(t: Moved, decay: str) -> Array:
    factor = {"decoupled": t.lr, "unscaled": np.ones_like(t.lr), "growing": -t.lr}.get(decay)
    return t.before * 0.0 if factor is None else t.decay * factor[:, None] * t.before


def _compare(
    tensors: Sequence[Moved], changes: Sequence[Array], directions: Sequence[Array]
) -> tuple[float, float]:
    wanted, given = [], []
    for t, change, direction in zip(tensors, changes, directions, strict=True):
        size = float(np.linalg.norm(change))
        if size > 0:
            wanted.append(change.ravel() / size)
            given.append((-t.lr[:, None] * direction).ravel() / size)
    if not wanted:
        return 1.0, 0.0
    y, x = np.concatenate(wanted), np.concatenate(given)
    power = float(x @ x)
    if not np.isfinite(power) or power == 0:
        return 1.0, 0.0
    scale = float(x @ y) / power
    return float(np.linalg.norm(y - scale * x) / np.linalg.norm(y)), scale


def rounding(tensors: Sequence[Moved]) -> float:
    """How much of the recorded changes is rounding of the parameters themselves."""
    shares = [
        1e-7
        * float(np.linalg.norm(t.before[t.change != 0]))
        / max(float(np.linalg.norm(t.change)), 1e-300)
        for t in tensors
    ]
    return float(np.sqrt(np.mean(np.square(shares)))) if shares else 1.0
