"""Every update rule against torch.optim over several steps, clipping against clip_grad_norm_."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.optimizers import (
    OPTIMIZERS,
    State,
    adam,
    adamw,
    clip_by_global_norm,
    momentum_classic,
    momentum_torch,
    nesterov,
    rmsprop,
    sgd,
)

SHAPES = [(3, 4), (5,), ()]


def draw(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in SHAPES]


def run_ours(step, rates, **hyper):
    """The parameters after each step. Gradients depend on the parameters, so that an error grows
    instead of hiding.
    """
    params, state, history = draw(0), State(), []
    for t, lr in enumerate(rates):
        grads = [p + noise for p, noise in zip(params, draw(t + 1), strict=True)]
        params, state = step(params, grads, state, lr=lr, **hyper)
        history.append(params)
    assert state.step == len(rates)
    return history


def run_torch(make, rates, each_step=None):
    params = [torch.nn.Parameter(torch.from_numpy(np.array(p))) for p in draw(0)]
    optimizer, history = make(params), []
    for t, lr in enumerate(rates):
        optimizer.param_groups[0]["lr"] = lr
        if each_step:
            each_step(optimizer.param_groups[0], t + 1)
        for p, noise in zip(params, draw(t + 1), strict=True):
            p.grad = p.detach() + torch.from_numpy(np.array(noise))
        optimizer.step()
        history.append([p.detach().numpy().copy() for p in params])
    return history


def assert_same(ours, theirs, rtol=1e-11):
    for t, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            np.testing.assert_allclose(
                x, y, rtol=rtol, atol=1e-13, err_msg=f"step {t}, parameter {i}"
            )


CHANGING = [0.1, 0.05, 0.2, 0.0, 0.01, 0.1]
DAMPED = {"momentum": 0.7, "dampening": 0.3, "weight_decay": 0.1}
RMS = {"alpha": 0.9, "eps": 0.1, "weight_decay": 0.1}
DECAYED = {"eps": 0.1, "weight_decay": 0.3}
CASES = [
    (sgd, torch.optim.SGD, {}, {}),
    (sgd, torch.optim.SGD, {"weight_decay": 0.1}, {"weight_decay": 0.1}),
    (momentum_torch, torch.optim.SGD, {}, {"momentum": 0.9}),
    (momentum_torch, torch.optim.SGD, DAMPED, DAMPED),
    (
        nesterov,
        torch.optim.SGD,
        {"weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    (rmsprop, torch.optim.RMSprop, {}, {}),
    (rmsprop, torch.optim.RMSprop, RMS, RMS),
    (adam, torch.optim.Adam, {}, {}),
    (
        adam,
        torch.optim.Adam,
        {"beta1": 0.8, "beta2": 0.95, **DECAYED},
        {"betas": (0.8, 0.95), **DECAYED},
    ),
    (adamw, torch.optim.AdamW, {}, {}),
    (
        adamw,
        torch.optim.AdamW,
        {"beta1": 0.8, "beta2": 0.95, **DECAYED},
        {"betas": (0.8, 0.95), **DECAYED},
    ),
]


@pytest.mark.parametrize(("step", "torch_class", "ours", "theirs"), CASES)
def test_update_rule_equals_torch_under_a_changing_rate(step, torch_class, ours, theirs):
    assert_same(
        run_ours(step, CHANGING, **ours), run_torch(lambda p: torch_class(p, **theirs), CHANGING)
    )


@given(
    st.lists(st.floats(1e-5, 0.3), min_size=1, max_size=8),
    st.floats(0.0, 0.99),
    st.floats(0.5, 0.9999),
)
@settings(deadline=None, derandomize=True, max_examples=30)
def test_adamw_equals_torch_for_any_rates_and_betas(rates, beta1, beta2):
    theirs = run_torch(lambda p: torch.optim.AdamW(p, betas=(beta1, beta2)), rates)
    assert_same(run_ours(adamw, rates, beta1=beta1, beta2=beta2), theirs, rtol=1e-9)


@pytest.mark.parametrize(
    ("step", "torch_class"), [(adam, torch.optim.Adam), (adamw, torch.optim.AdamW)]
)
def test_without_bias_correction_equals_torch_with_the_correction_undone(step, torch_class):
    # torch always corrects: m / c1 over (sqrt(s / c2) + eps). A rate times c1 / sqrt(c2) and eps /
    # sqrt(c2) undo it.
    def undo(group, t):
        c1, c2 = 1 - 0.9**t, 1 - 0.999**t
        group["lr"], group["eps"] = group["lr"] * c1 / c2**0.5, 1e-3 / c2**0.5

    theirs = run_torch(lambda p: torch_class(p, weight_decay=0.0), CHANGING, undo)
    ours = run_ours(step, CHANGING, eps=1e-3, weight_decay=0.0, bias_correction=False)
    assert_same(ours, theirs)
    corrected = run_ours(step, CHANGING, eps=1e-3, weight_decay=0.0)
    assert np.abs(corrected[0][0] - ours[0][0]).max() > 0.01


def test_momentum_conventions_agree_while_the_rate_is_constant_and_part_when_it_changes():
    constant = [0.05] * 6
    assert_same(run_ours(momentum_torch, constant), run_ours(momentum_classic, constant))
    lowered = [0.05] * 3 + [0.005] * 3
    torchs, classic = run_ours(momentum_torch, lowered), run_ours(momentum_classic, lowered)
    assert_same(torchs[:3], classic[:3])
    assert np.abs(torchs[3][0] - classic[3][0]).max() > 0.01
    assert_same(classic, run_torch(ClassicMomentum, lowered))


class ClassicMomentum(torch.optim.Optimizer):
    """What torch does not offer: the rate inside the velocity, here written as the parameter's last
    displacement.
    """

    def __init__(self, params):
        super().__init__(params, {"lr": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                previous = self.state[p].get("previous", p.clone())
                self.state[p]["previous"] = p.clone()
                p.copy_(p - group["lr"] * p.grad + 0.9 * (p - previous))


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_step_is_pure(name):
    params, grads = draw(0), draw(1)
    kept = [p.copy() for p in params], [g.copy() for g in grads]
    step = OPTIMIZERS[name].step
    after, state = step(params, grads, State())
    slots = {key: [a.copy() for a in arrays] for key, arrays in state.slots.items()}
    first = step(after, grads, state)
    second = step(after, grads, state)
    for a, b in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(a, b)
    after[0][...] = np.nan
    for key, arrays in slots.items():
        for a, b in zip(arrays, state.slots[key], strict=True):
            np.testing.assert_array_equal(a, b)
    for before, now in zip((*kept[0], *kept[1]), (*params, *grads), strict=True):
        np.testing.assert_array_equal(before, now)


@pytest.mark.parametrize(
    ("name", "torch_class", "renamed"),
    [
        ("sgd", torch.optim.SGD, {}),
        ("rmsprop", torch.optim.RMSprop, {}),
        ("adam", torch.optim.Adam, {"beta1": ("betas", 0), "beta2": ("betas", 1)}),
        ("adamw", torch.optim.AdamW, {"beta1": ("betas", 0), "beta2": ("betas", 1)}),
    ],
)
def test_defaults_are_torchs(name, torch_class, renamed):
    theirs = torch_class([torch.nn.Parameter(torch.zeros(1))]).defaults
    for parameter in inspect.signature(OPTIMIZERS[name].step).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "bias_correction":
            key, index = renamed.get(parameter.name, (parameter.name, None))
            expected = theirs[key] if index is None else theirs[key][index]
            assert parameter.default == expected, parameter.name


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 3.0, 1e6])
def test_clipping_equals_torch(max_norm):
    grads = draw(4)
    params = [torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64)) for shape in SHAPES]
    for p, g in zip(params, grads, strict=True):
        p.grad = torch.from_numpy(np.array(g))
    expected = torch.nn.utils.clip_grad_norm_(params, max_norm)
    clipped, norm = clip_by_global_norm(grads, max_norm)
    assert norm == pytest.approx(float(expected), rel=1e-13)
    for ours, p in zip(clipped, params, strict=True):
        np.testing.assert_allclose(ours, p.grad.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_clipping_spreads_non_finite_gradients_as_torch_does(bad):
    grads = [np.array([1.0, bad]), np.array([2.0])]
    params = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in grads]
    for p, g in zip(params, grads, strict=True):
        p.grad = torch.from_numpy(g.copy())
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    clipped, norm = clip_by_global_norm(grads, 1.0)
    assert not np.isfinite(norm)
    for ours, p in zip(clipped, params, strict=True):
        np.testing.assert_array_equal(ours, p.grad.numpy())


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_shapes_that_do_not_fit_are_named(name):
    step = OPTIMIZERS[name].step
    with pytest.raises(
        ShapeMismatch,
        match=r"grads\[1\] has shape \(3,\); expected \(2,\) = the shape of params\[1\]",
    ):
        step([np.ones(4), np.ones(2)], [np.ones(4), np.ones(3)], State())
    with pytest.raises(ShapeMismatch, match=r"grads has 1 arrays; expected 2"):
        step([np.ones(4), np.ones(2)], [np.ones(4)], State())
    with pytest.raises(
        ShapeMismatch,
        match=r"params is a ndarray; expected a list of arrays, so for one array \[params\]",
    ):
        step(np.ones(4), [np.ones(4)], State())
    with pytest.raises(ValueOutOfRange, match=r"lr is -1; expected a number in \[0, inf\)"):
        step([np.ones(4)], [np.ones(4)], State(), lr=-1)
    with pytest.raises(ValueOutOfRange, match=r"lr is nan"):
        step([np.ones(4)], [np.ones(4)], State(), lr=float("nan"))


def test_a_state_that_belongs_elsewhere_is_refused():
    one, two = [np.ones(3)], [np.ones(3), np.ones(2)]
    _, state = momentum_torch(one, one, State())
    with pytest.raises(
        ValueOutOfRange,
        match="state at step 1 holds velocity; expected mean, so it is another optimizer's",
    ):
        adam(one, one, state)
    with pytest.raises(ShapeMismatch, match=r"state\.slots\['velocity'\] has 1 arrays; expected 2"):
        momentum_torch(two, two, state)
    with pytest.raises(
        ShapeMismatch, match=r"state\.slots\['velocity'\]\[0\] has shape \(3,\); expected \(4,\)"
    ):
        momentum_torch([np.ones(4)], [np.ones(4)], state)
