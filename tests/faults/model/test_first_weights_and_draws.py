"""Zero matrices in a row, and samples drawn without a gradient, next to the healthy code that comes
closest.
"""

import numpy as np
import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Run, Tensor

X = torch.randn(16, 5, generator=torch.Generator().manual_seed(1))
Y = torch.arange(16) % 4


def said(model, loss, fault):
    """Whether the check of this fault fires on one observed step."""
    named = list(model.named_parameters())
    tensors = tuple(
        Tensor(i, n, tuple(p.shape), "float32", True, "Linear", 0, 0)
        for i, (n, p) in enumerate(named)
    )
    sizes = np.array([[float(p.detach().norm()) for _, p in named]], np.float32)
    deep = observe(model, lambda: loss(model))
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        deep=(deep,),
        tensors=tensors,
        tensor_steps=np.zeros(1, np.int64),
        steps={"step": np.zeros(1), "loss": np.ones(1)},
        statistics={"param_l2": sizes, "grad_l2": np.ones_like(sizes)},
    )
    return [f.fault for f in read(run, fault).findings] == [fault]


def _net(*zero, activation=nn.Sigmoid):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), activation(), nn.Linear(8, 4))
    for layer in zero:
        nn.init.zeros_(model[layer].weight)
        nn.init.zeros_(model[layer].bias)
    return model


@pytest.mark.parametrize("activation", [nn.Sigmoid, nn.ReLU, nn.Tanh])
def test_a_zero_matrix_behind_a_zero_matrix_is_named(activation):
    assert said(
        _net(0, 2, activation=activation), lambda m: F.cross_entropy(m(X), Y), "model.bad-init"
    )


def test_a_zero_head_and_a_zero_branch_beside_a_path_are_not():
    loss = lambda m: F.cross_entropy(m(X), Y)  # noqa: E731
    assert not said(_net(2), loss, "model.bad-init") and not said(_net(), loss, "model.bad-init")
    branch = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 4)])
    for layer in branch:
        nn.init.zeros_(layer.weight)
    assert not said(branch, lambda m: F.cross_entropy(m[1](X + m[0](X)), Y), "model.bad-init")


def _latent(draw):
    torch.manual_seed(0)
    model = nn.ModuleDict({"enc": nn.Linear(5, 4), "dec": nn.Linear(2, 5)})

    def loss(m):
        mean, raw = m["enc"](X).chunk(2, -1)
        q = Normal(mean, F.softplus(raw) + 0.1)
        return F.mse_loss(m["dec"](draw(q)), X) + 0.1 * (mean**2).mean()

    return model, loss


def test_a_sample_that_cuts_its_encoder_off_is_named():
    assert said(*_latent(lambda q: q.sample()), "model.detached-graph")
    assert said(*_latent(lambda q: torch.normal(q.loc, q.scale)), "model.detached-graph")


def test_a_sample_with_gradients_is_not():
    assert not said(*_latent(lambda q: q.rsample()), "model.detached-graph")
    assert not said(
        *_latent(lambda q: q.loc + (q.sample() - q.loc).detach()), "model.detached-graph"
    )


def test_a_policy_gradient_is_not():
    model = nn.ModuleDict({"actor": nn.Linear(5, 2), "critic": nn.Linear(7, 1)})

    def loss(m):
        q = Normal(m["actor"](X), 1.0)
        action = q.sample()
        value = m["critic"](torch.cat([X, action], -1)).squeeze(-1)
        return F.mse_loss(value, X[:, 0]) - (q.log_prob(action).sum(-1) * value.detach()).mean()

    assert not said(model, loss, "model.detached-graph")


class _Drawn(nn.Module):
    """Weights that are drawn anew at every call, as in Bayes by backprop, or all the same."""

    def __init__(self, spread):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(8, 8) if spread else torch.full((8, 8), 0.3))
        self.spread = nn.Parameter(torch.full((8, 8), -5.0)) if spread else None

    def forward(self, x):
        if self.spread is None:
            return F.linear(x, self.mean)
        return F.linear(x, self.mean + F.softplus(self.spread) * torch.randn(8, 8))


@pytest.mark.parametrize("spread", [True, False])
def test_one_number_is_a_bad_start_for_weights_and_a_good_one_for_their_spreads(spread):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), _Drawn(spread), nn.Tanh(), nn.Linear(8, 4))
    told = said(model, lambda m: F.cross_entropy(m(X), Y), "model.bad-init")
    assert told != spread
