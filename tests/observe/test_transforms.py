"""Training by torch.func: the gradients of a pure function are the backward passes of the run."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.nn import functional as F

import sawbones
from sawbones.observe.options import Options
from sawbones.stats.supervised import supervised

DEEP = Options(deep_steps=(0, 1, 2), deep_every=0, journal=True)
X = torch.randn(60, 4, generator=torch.Generator().manual_seed(5))
Y = (X[:, 0] > X[:, 1]).long()


def _weights() -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(2)
    return {
        "read": 0.5 * torch.randn(4, 10, generator=made),
        "answer": 0.5 * torch.randn(10, 2, generator=made),
    }


def _loss(weights, x, y):
    hidden = F.dropout(torch.tanh(x @ weights["read"]), 0.2)
    return F.cross_entropy(hidden @ weights["answer"], y)


def _with_more(weights, x, y):
    return _loss(weights, x, y), x.mean()


def _values(gradient):
    return lambda *args: (gradient(*args), None)


WAYS = {
    "grad": _values(grad(_loss)),
    "grad_and_value": grad_and_value(_loss),
    "grad_and_value with more": grad_and_value(_with_more, has_aux=True),
    "second argument": lambda w, x, y: grad_and_value(lambda x, w: _loss(w, x, y), argnums=1)(x, w),
}


def _train(way, steps: int = 8) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    weights = _weights()
    for _ in range(steps):
        gradients, _ = way(weights, X, Y)
        weights = {name: weights[name] - 0.3 * gradients[name] for name in weights}
    return weights


@pytest.mark.parametrize("name", WAYS)
def test_steps_losses_gradients_and_updates_are_recorded(name: str, tmp_path) -> None:
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        _train(WAYS[name])
    run = watching.close()
    assert not run.off
    assert run.num_steps == 7  # the last update has no pass behind it that shows it
    assert run.losses[0] > run.losses[-1] > 0
    assert (run.steps["grad_norm"] > 0).all()
    assert run.steps["update_norm"][0] == pytest.approx(0.3 * run.steps["grad_norm"][0], rel=1e-4)
    (updates,) = run.updates
    assert {t.shape for t in updates.tensors} == {(4, 10), (10, 2)}
    assert len(updates.tensors[0].after) == 7


def test_a_deep_step_looks_into_the_function(tmp_path) -> None:
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        _train(WAYS["grad_and_value"])
    run = watching.close()
    assert [deep.step for deep in run.deep] == [1, 2]
    for deep in run.deep:
        assert [call.fn for call in deep.losses] == ["cross_entropy"]
        assert {"matmul", "tanh"} <= {op.name for op in deep.ops}
        assert not deep.probes.get("errors")
    assert supervised(run).losses[1] == pytest.approx(run.losses[1], rel=1e-5)


@pytest.mark.parametrize("name", WAYS)
def test_watching_changes_no_weight(name: str, tmp_path) -> None:
    alone = _train(WAYS[name])
    after = torch.random.get_rng_state()
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        watched = _train(WAYS[name])
    watching.close()
    assert torch.equal(after, torch.random.get_rng_state())
    assert all(torch.equal(alone[key], watched[key]) for key in alone)


def test_the_arguments_may_stand_for_the_parameters_of_a_module(tmp_path) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    way = grad_and_value(
        lambda weights, x, y: F.cross_entropy(functional_call(model, weights, x), y)
    )
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        weights = {name: p.detach().clone() for name, p in model.named_parameters()}
        for _ in range(5):
            functional_call(model, weights, X)
            gradients, _ = way(weights, X, Y)
            weights = {name: weights[name] - 0.3 * gradients[name] for name in weights}
    assert watching.close().num_steps == 4


def test_a_gradient_of_the_inputs_is_no_step(tmp_path) -> None:
    model = nn.Linear(4, 2)
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        moved = X.clone()
        model(moved)
        for _ in range(4):
            moved = moved + grad(lambda x: F.cross_entropy(model(x), Y))(moved).sign()
    assert watching.close().num_steps == 0


def test_gradients_inside_of_another_transform_are_no_steps_of_their_own(tmp_path) -> None:
    def adapted(weights, x, y):
        inner = grad(_loss)(weights, x, y)
        return _loss({name: weights[name] - 0.1 * inner[name] for name in weights}, x, y)

    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        _train(grad_and_value(adapted), steps=4)
        vmap(grad(lambda w, x: (x @ w["read"]).sum()), in_dims=(None, 0))(_weights(), X)
    run = watching.close()
    assert not run.off and run.num_steps == 3


def test_an_optimizer_that_is_given_the_gradients_takes_the_steps(tmp_path) -> None:
    weights = {name: nn.Parameter(w) for name, w in _weights().items()}
    optimizer = torch.optim.SGD(weights.values(), lr=0.1)
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        for _ in range(3):
            for name, gradient in grad(_loss)(dict(weights), X, Y).items():
                weights[name].grad = gradient.detach()
            optimizer.step()
    run = watching.close()
    assert run.num_steps == 3 and run.steps["optimizer"].tolist() == [0, 0, 0]


def test_nothing_of_the_script_is_kept_once_an_optimizer_steps(tmp_path) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with sawbones.watch(out=tmp_path / "run", options=DEEP):
        F.cross_entropy(model(X), Y).backward()
        scaled = 2 * X
        mine = weakref.ref(scaled)
        del scaled
        optimizer.step()
        assert mine() is None
