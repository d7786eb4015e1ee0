"""Gradients under updates written by hand: never cleared is named, every way of clearing stays
silent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import sawbones
from sawbones.faults import read
from sawbones.observe.options import Options
from sawbones.schema import Finding
from sawbones.store import read_run

X = torch.linspace(0.1, 1, 16).unsqueeze(1)


def _nothing(p: Tensor) -> None:
    pass


def _set_to_none(p: Tensor) -> None:
    p.grad = None


def _zeroed(p: Tensor) -> None:
    assert p.grad is not None
    p.grad.zero_()


def _zeroed_through_data(p: Tensor) -> None:
    assert p.grad is not None
    p.grad.data.zero_()


def _decayed(p: Tensor) -> None:
    assert p.grad is not None
    p.grad.mul_(0.5)


def _update(*params: Tensor) -> None:
    for p in params:
        assert p.grad is not None
        p.data.sub_(0.01 * p.grad)


def _found(folder: Path, loop: Callable[[], None]) -> tuple[Finding, ...]:
    with sawbones.watch(out=folder, options=Options(deep_steps=(), deep_every=0)):
        loop()
    run = read_run(folder)
    assert len(run.of_kind("manual_step")) >= 5
    return read(run, "loop.no-zero-grad", strict=True).findings


@pytest.mark.parametrize(
    ("clear", "fires"),
    [
        (_nothing, True),
        (_set_to_none, False),
        (_zeroed, False),
        (_zeroed_through_data, False),
        (_decayed, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("before_backward", [True, False])
def test_a_line_fitted_by_hand(
    clear: Callable[[Tensor], None], fires: bool, before_backward: bool, tmp_path: Path
) -> None:
    w, b = torch.zeros(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def loop() -> None:
        for step in range(8):
            loss = (w * X + b - 3 * X).square().mean()
            if before_backward and step:
                for p in (w, b):
                    clear(p)
            loss.backward()  # type: ignore[no-untyped-call]
            _update(w, b)
            if not before_backward:
                for p in (w, b):
                    clear(p)

    assert [f.status for f in _found(tmp_path / "run", loop)] == (["likely"] if fires else [])


def test_accumulation_by_hand_is_no_missing_clearing(tmp_path: Path) -> None:
    w = torch.zeros(1, requires_grad=True)

    def loop() -> None:
        for _ in range(8):
            for part in X.split(4):
                (w * part - 3 * part).square().mean().backward()  # type: ignore[no-untyped-call]
            _update(w)
            w.grad = None

    assert not _found(tmp_path / "run", loop)


@pytest.mark.parametrize("fires", [True, False])
def test_two_networks_in_turns_are_each_judged_by_their_own_updates(
    fires: bool, tmp_path: Path
) -> None:
    """The second's passes leave gradients in the first, which clears them before its own."""
    first, second = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def loop() -> None:
        for _ in range(8):
            for p in (first, second):
                if not fires:
                    p.grad = None
                (first * second * X - X - 2).square().mean().backward()  # type: ignore[no-untyped-call]
                _update(p)

    assert [f.status for f in _found(tmp_path / "run", loop)] == (["likely"] if fires else [])


def test_an_attack_on_the_input_leaves_gradients_in_a_network_that_stays(tmp_path: Path) -> None:
    w, change = torch.ones(1, requires_grad=True), torch.zeros(16, 1, requires_grad=True)

    def loop() -> None:
        for _ in range(8):
            (w * (X + change)).square().mean().backward()  # type: ignore[no-untyped-call]
            assert change.grad is not None
            change.data.add_(0.1 * change.grad.sign())
            change.grad.zero_()

    assert not _found(tmp_path / "run", loop)
