"""A softmax over a dimension of size 1 that enters the loss is a constant; over classes, or as a
weight inside of the model, it is not.
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

X = torch.linspace(-1, 1, 48).reshape(16, 3)
Y = (X[:, :1] > 0).float()


class _Net(nn.Module):
    def __init__(self, num_outputs: int, last: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body = nn.Linear(3, num_outputs)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x))


def _found(folder: Path, net: nn.Module, loss: Callable[[Tensor], Tensor]) -> tuple[Finding, ...]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with sawbones.watch(net, out=folder, options=Options(deep_steps=(0, 1), deep_every=0)):
        for _ in range(3):
            optimizer.zero_grad()
            loss(net(X)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    run = read_run(folder)
    assert len(run.deep) == 2
    return read(run, "model.softmax-axis", strict=True).findings


def _bce(out: Tensor) -> Tensor:
    return functional.binary_cross_entropy(out, Y)


@pytest.mark.parametrize(
    ("last", "loss"),
    [
        (nn.Softmax(dim=1), _bce),
        (lambda z: functional.softmax(z, dim=-1).squeeze(1), lambda out: _bce(out.unsqueeze(1))),
        (
            lambda z: functional.log_softmax(z, dim=1),
            lambda out: functional.binary_cross_entropy_with_logits(out, Y),
        ),
        (lambda z: z.softmax(1), lambda out: functional.mse_loss(out, Y)),
        (lambda z: functional.softmax(z), _bce),
    ],
    ids=["module", "squeezed", "log-softmax as logits", "squared error", "no dim"],
)
@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
def test_one_output_under_a_softmax_is_a_constant(
    last: Callable[[Tensor], Tensor], loss: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    (found,) = _found(tmp_path, _Net(1, last), loss)
    assert found.status == "proven"
    assert "size 1" in found.title


@pytest.mark.parametrize(
    ("num_outputs", "last", "loss"),
    [
        (2, nn.Softmax(dim=1), lambda out: _bce(out[:, 1:])),
        (
            2,
            lambda z: functional.log_softmax(z, dim=1),
            lambda out: functional.nll_loss(out, Y[:, 0].long()),
        ),
        (1, lambda z: torch.sigmoid(z * functional.softmax(z, dim=1)), _bce),
    ],
    ids=["two classes", "log-probabilities", "one weight inside of the model"],
)
def test_what_still_learns_is_left_alone(
    num_outputs: int,
    last: Callable[[Tensor], Tensor],
    loss: Callable[[Tensor], Tensor],
    tmp_path: Path,
) -> None:
    assert not _found(tmp_path, _Net(num_outputs, last), loss)
