"""A softmax is judged by its part in a sum: as weights it has to add up to 1 over what is summed; as
what is weighed, or as shares of slots, it has not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import sawbones
from sawbones.faults import read
from sawbones.observe.options import Options
from sawbones.schema import Finding
from sawbones.store import read_run

WIDTH, LENGTH, ROWS = 8, 7, 6
X = torch.sin(torch.arange(ROWS * LENGTH * WIDTH) * 0.37).reshape(ROWS, LENGTH, WIDTH)
Y = torch.arange(ROWS) % 3


class _Net(nn.Module):
    def __init__(self, body: Callable[[_Net, Tensor], Tensor]) -> None:
        super().__init__()
        self.body = body
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.one, self.slots = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 4)
        self.mixing = nn.Parameter(torch.randn(2, 2))
        self.table = nn.Parameter(torch.randn(4, 5))
        self.routes = nn.Parameter(torch.randn(4, LENGTH, WIDTH, WIDTH) * 0.3)
        self.head = nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(self, x).flatten(1))
        return out


def _found(folder: Path, body: Callable[[_Net, Tensor], Tensor]) -> tuple[Finding, ...]:
    torch.manual_seed(2)
    net = _Net(body)
    net(X)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    with sawbones.watch(net, out=folder, options=Options(deep_steps=(0, 1), deep_every=0)):
        for _ in range(2):
            optimizer.zero_grad()
            functional.cross_entropy(net(X), Y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return read(read_run(folder), "model.softmax-axis", strict=True).findings


def _scores(net: _Net, x: Tensor) -> Tensor:
    return net.query(x) @ net.key(x).mT / WIDTH**0.5


def _heads(layer: nn.Module, x: Tensor) -> Tensor:
    made: Tensor = layer(x).unflatten(-1, (2, -1)).transpose(1, 2)
    return made


def _mixture(net: _Net, x: Tensor) -> Tensor:
    gates = net.slots(x).softmax(-1)
    parts = net.value(x).unsqueeze(2).mul(torch.arange(1.0, 5.0)[:, None]).softmax(-1)
    return (gates.unsqueeze(-1) * parts).sum(2).add(1e-6).log()


def _topics(net: _Net, x: Tensor) -> Tensor:
    shares: Tensor = net.slots(x).softmax(-1)
    return torch.matmul(shares, net.table.softmax(-1))


def _chain(net: _Net, x: Tensor) -> Tensor:
    state = net.slots(x[:, 0]).softmax(-1)
    moves = net.table[:, :4].softmax(dim=1)
    for t in range(1, LENGTH):
        state = (state @ moves) * net.slots(x[:, t]).sigmoid()
    return torch.as_tensor(state)


def _talking_heads(net: _Net, x: Tensor) -> Tensor:
    query, key, value = (_heads(f, x) for f in (net.query, net.key, net.value))
    seen = (query @ key.mT / 2.0).softmax(-1)
    seen = torch.einsum("gh,bhij->bgij", net.mixing, seen)
    return torch.einsum("bgij,bgjd->bgid", seen, value)


def _pooled_graph(net: _Net, x: Tensor) -> Tensor:
    places = net.slots(x).softmax(dim=-1)
    return places.transpose(1, 2) @ net.value(x)


def _descriptors(net: _Net, x: Tensor) -> Tensor:
    shares = net.slots(x).transpose(1, 2).softmax(1)
    apart = net.value(x).unsqueeze(1) - net.query.weight[:4].unsqueeze(1)
    return functional.normalize((shares.unsqueeze(-1) * apart).sum(2), dim=-1)


def _capsules(net: _Net, x: Tensor) -> Tensor:
    votes = (net.routes @ x[:, None, :, :, None]).squeeze(-1)
    agreed = votes.mean(2, keepdim=True)
    for _ in range(2):
        routing = (votes * agreed).sum(-1, keepdim=True).softmax(dim=1)
        agreed = (routing * votes).sum(dim=2, keepdim=True)
    return agreed


@pytest.mark.parametrize(
    "body",
    [_mixture, _topics, _chain, _talking_heads, _pooled_graph, _descriptors, _capsules],
    ids=lambda body: body.__name__.strip("_"),
)
def test_a_softmax_that_does_not_weigh_is_left_alone(
    body: Callable[[_Net, Tensor], Tensor], tmp_path: Path
) -> None:
    assert not _found(tmp_path, body)


def _over_queries(net: _Net, x: Tensor) -> Tensor:
    seen: Tensor = _scores(net, x).softmax(-2)
    return seen @ net.value(x)


def _over_heads(net: _Net, x: Tensor) -> Tensor:
    query, key, value = (_heads(f, x) for f in (net.query, net.key, net.value))
    return (query @ key.mT / 2.0).softmax(dim=1) @ value


def _over_rows(net: _Net, x: Tensor) -> Tensor:
    instances = net.value(x).relu() * 3
    return (net.one(instances.tanh()).softmax(0) * instances).sum(1)


def _spelled_with_letters(net: _Net, x: Tensor) -> Tensor:
    scores = torch.einsum("btd,bsd->bts", net.query(x), net.key(x))
    return torch.einsum("bts,bsd->btd", scores.softmax(1), net.value(x))


@pytest.mark.parametrize(
    "body",
    [_over_queries, _over_heads, _over_rows, _spelled_with_letters],
    ids=lambda body: body.__name__.strip("_"),
)
def test_weights_that_do_not_add_up_over_what_is_summed_are_proven(
    body: Callable[[_Net, Tensor], Tensor], tmp_path: Path
) -> None:
    (found,) = _found(tmp_path, body)
    assert found.status == "proven"
    assert "do not add up to 1" in found.evidence[0].text
