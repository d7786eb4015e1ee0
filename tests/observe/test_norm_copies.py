"""Copies of a trained model and the statistics of their batch norms."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn

from sawbones.observe.journal import Journal
from sawbones.observe.signals.norm_copies import NormCopies
from sawbones.observe.sites import SiteFinder
from sawbones.schema.one_off import NormCopy

ROWS = 3 + torch.randn(64, 6, generator=torch.Generator().manual_seed(2))


def _network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))


def _seen(
    copied: Callable[[nn.Module, nn.Module], nn.Module],
    then: Callable[[nn.Module], None] | None = None,
) -> list[NormCopy] | None:
    """Train for a while; `copied` makes what is evaluated of the model at its start and its end,
    and `then` is done to it before a second evaluation.
    """
    torch.manual_seed(0)
    sites = SiteFinder("")
    log = NormCopies(Journal(sites), sites)
    model = _network()
    start = copy.deepcopy(model)
    log.called(model, "train", 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        model(ROWS).square().mean().backward()
        optimizer.step()
    evaluated = copied(start, model).eval()
    log.called(evaluated, "eval", 10)
    if then is not None:
        then(evaluated)
        log.called(evaluated.eval(), "eval", 10)
    return log.record()


def _parameters_only(start: nn.Module, model: nn.Module) -> nn.Module:
    for mine, theirs in zip(start.parameters(), model.parameters(), strict=True):
        mine.data.copy_(theirs)
    return start


def _averaged(start: nn.Module, model: nn.Module) -> AveragedModel:
    average = AveragedModel(start)
    for _ in range(2):
        average.update_parameters(model)
    return average


def _averaged_and_updated(start: nn.Module, model: nn.Module) -> nn.Module:
    average = _averaged(start, model)
    update_bn([ROWS], average)
    return average


def test_a_copy_of_the_parameters_alone_has_statistics_that_never_moved() -> None:
    (found,) = _seen(_parameters_only) or ()
    assert (found.layers, found.unmoved, found.moved_in_trained) == (1, 1, 1)


@pytest.mark.parametrize(
    "copied", [lambda start, model: copy.deepcopy(model), _averaged, _averaged_and_updated]
)
def test_a_copy_with_statistics_of_its_own_is_whole(copied) -> None:
    (found,) = _seen(copied) or ()
    assert found.unmoved == 0


@pytest.mark.parametrize(
    "kept",
    [lambda start, model: start, lambda start, model: _network(), lambda start, model: model],
)
def test_a_model_before_training_another_one_and_the_trained_one_are_no_copies(kept) -> None:
    assert _seen(kept) is None


def test_statistics_that_are_gathered_between_two_evaluations_count() -> None:
    (found,) = _seen(_parameters_only, lambda copied: update_bn([ROWS], copied)) or ()
    assert found.unmoved == 0
