"""Forecasts of numbers: whether the targets are the model's own float input ahead of time, and
whether outputs see it coming.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch

from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.modules import ModuleCall
from sawbones.observe.random_streams import streams_put_back
from sawbones.properties.inputs import as_it_was, replaced, tensors_in

_AHEAD = (1, 2, 3)
_SHORTEST = 6
_MAX_FEATURES = 16
_MAX_PARAMETERS = 200_000_000
_PLACES = 5  # at an even toss of a coin, all of them are missed once in 32 deep steps


def probe(call: ModuleCall, loss: Found) -> dict[str, Any] | None:
    """How much outputs before a cut change when the input after it does; None when this is no
    forecast of the input.
    """
    target = loss.target.tensor() if loss.target is not None else None
    if (
        target is None
        or not target.is_floating_point()
        or target.dim() < 2
        or target.shape != loss.input.shape
    ):
        return None
    if sum(p.numel() for p in call.module.parameters()) > _MAX_PARAMETERS:
        return None
    goal = target.detach().squeeze(-1) if target.dim() > 2 else target.detach()
    for given in tensors_in((call.args, call.kwargs)):
        match = _ahead(given.detach(), goal) if given.is_floating_point() else None
        if match is not None:
            dim, goal_dim, ahead = match
            moved = _perturb(call, given, tuple(goal.shape), dim, goal_dim)
            return moved and {**moved, "ahead": ahead, "time_dim": dim, "shape": tuple(given.shape)}
    return _fed(call, goal)


def _fed(call: ModuleCall, goal: torch.Tensor) -> dict[str, Any] | None:
    """One of several inputs is the target itself: whether the output at a place depends on it
    there, and not before. Of several values at a time either dimension may be the time: it is the
    one along which later outputs move as well, and in which another input, what came before, may
    be longer or shorter. A network that gives back its input along with its class has no such one.
    """
    inputs = list(tensors_in((call.args, call.kwargs)))
    same = [t for t in inputs if t.is_floating_point() and _is_goal(t.detach(), goal)]
    others = [t for t in inputs if t.numel() > 1 and not any(t is s for s in same)]
    if len(same) != 1 or not others or goal.dim() not in (2, 3):
        return None
    found: dict[str, Any] | None = None
    for dim in range(1, goal.dim()):
        if goal.shape[dim] < _SHORTEST or float(goal.std(dim).min()) <= 0:
            continue
        if goal.dim() == 3 and not any(_is_same_series(other, goal, dim) for other in others):
            continue
        moved = _moved_by_places(call, same[0], goal, dim, training=False)
        if moved is not None and moved["own"] <= 0 and call.module.training:
            # Some models are fed the target in training only.
            moved = _moved_by_places(call, same[0], goal, dim, training=True)
        if moved is None or (goal.dim() == 3 and moved["later"] <= 0):
            continue
        if found is None or moved["earlier"] < found["earlier"]:
            found = {"ahead": 0, **moved, "shape": tuple(same[0].shape)}
    return found


def _moved_by_places(
    call: ModuleCall, given: torch.Tensor, goal: torch.Tensor, dim: int, training: bool
) -> dict[str, float] | None:
    """How much outputs move at single places, before them and after them when the input changes
    there: the most of some places, since a decoder may be fed the target by the toss of a coin.
    """
    model = copy.deepcopy(call.module).train(training)
    shape = tuple(goal.shape)
    before = _run(model, call, given, given.detach().clone(), shape)
    if before is None:
        return None
    scale = float(before.std()) + 1e-12
    length = shape[dim]
    own = earlier = later = 0.0
    for place in listed(torch.linspace(1, length - 2, _PLACES).round().long().unique()):
        changed = given.detach().clone()
        changed.select(dim, place).add_(given.detach().std() + 1.0)
        after = _run(model, call, given, changed, shape)
        if after is None:
            return None
        moved = (after - before).abs() / scale
        own = max(own, float(moved.select(dim, place).max()))
        earlier = max(earlier, float(moved.narrow(dim, 0, place).max()))
        later = max(later, float(moved.narrow(dim, place + 1, length - place - 1).max()))
    return {"own": own, "earlier": earlier, "later": later}


def _is_same_series(other: torch.Tensor, goal: torch.Tensor, dim: int) -> bool:
    """Whether an input has the shape of the targets but for its length."""
    if not other.is_floating_point() or other.dim() != goal.dim():
        return False
    return all(other.shape[d] == goal.shape[d] for d in range(goal.dim()) if d != dim)


def _is_goal(given: torch.Tensor, goal: torch.Tensor) -> bool:
    return any(
        form.shape == goal.shape and torch.equal(form, goal) for form in (given, given.squeeze(-1))
    )


def _forms(given: torch.Tensor, dims: int) -> Iterator[tuple[torch.Tensor, int | None]]:
    """The input as it is, or single features of it, with the dimension that was taken out."""
    if given.dim() == dims:
        yield given, None
    elif given.dim() == dims + 1:
        for axis in (given.dim() - 1, 1):
            for feature in range(min(given.shape[axis], _MAX_FEATURES)):
                yield given.select(axis, feature), axis


def _ahead(given: torch.Tensor, goal: torch.Tensor) -> tuple[int, int, int] | None:
    """(time in the input, time in the targets, steps ahead) under which the targets are the input
    itself, later.
    """
    for form, taken in _forms(given, goal.dim()):
        if form.shape != goal.shape or torch.equal(form, goal):
            continue
        for dim in range(goal.dim()):
            length = goal.shape[dim]
            for ahead in _AHEAD if length >= _SHORTEST else ():
                later, wanted = (
                    form.narrow(dim, ahead, length - ahead),
                    goal.narrow(dim, 0, length - ahead),
                )
                # A constant series equals itself under every shift.
                if torch.equal(later, wanted) and float(wanted.std(dim).min()) > 0:
                    return (dim + 1 if taken is not None and dim >= taken else dim), dim, ahead
    return None


def _perturb(
    call: ModuleCall, given: torch.Tensor, shape: tuple[int, ...], dim: int, goal_dim: int
) -> dict[str, Any] | None:
    model = copy.deepcopy(call.module).eval()
    length = given.shape[dim]
    cut = length // 2
    changed = given.detach().clone()
    tail = changed.narrow(dim, cut, length - cut)
    tail.copy_(tail.flip(dim) + tail.std())
    before = _run(model, call, given, given.detach().clone(), shape)
    after = _run(model, call, given, changed, shape)
    if before is None or after is None:
        return None
    moved = (after - before).abs()
    scale = float(before.std()) + 1e-12
    return {
        "cut": cut,
        "before": float(moved.narrow(goal_dim, 0, cut).max()) / scale,
        "at": float(moved.narrow(goal_dim, cut, 1).max()) / scale,
        "after": float(moved.narrow(goal_dim, cut, length - cut).max()) / scale,
    }


def _run(
    model: torch.nn.Module,
    call: ModuleCall,
    old: torch.Tensor,
    new: torch.Tensor,
    shape: tuple[int, ...],
) -> torch.Tensor | None:
    args, kwargs = replaced((call.args, call.kwargs), old, new)
    with streams_put_back():  # every run tosses the same coins
        answers = as_it_was(model)(*args, **kwargs)
    for answer in tensors_in(answers):
        for form in (answer, answer.squeeze(-1)):
            if tuple(form.shape) == shape:
                return form.detach().double()
    return None
