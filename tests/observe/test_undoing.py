"""Pictures that a model answers well again once a step of their preparation is taken back; and a
copy of the same parameters that answers otherwise.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from sawbones.faults import all_checks
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Finding, Run
from sawbones.schema.populations import Populations

ROWS = 300


class _Red(nn.Module):
    """Whether the upper half of a picture is red."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([4.0, -2.0, -2.0]))
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        red = torch.einsum("nchw,c->n", x[:, :, :3], self.weight)
        return self.norm(torch.stack([-red, red], 1))


def _pictures(seed: int) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed)
    colours = torch.randn(ROWS, 3, 2, 1, generator=made)
    return colours.repeat_interleave(3, 2).expand(ROWS, 3, 6, 6) + 0.0


def _told(served: torch.Tensor, model: nn.Module | None = None, seed: int = 1) -> Populations:
    trained = _Red().eval()
    log = PassLog(SiteFinder(""))
    log.trains(trained, ((_pictures(0),), {}))
    first = _pictures(seed)
    for number, rows in enumerate((first, served)):
        asked = trained if number == 0 or model is None else model
        wanted = trained(_pictures(seed + number if model is None else seed)).argmax(1)
        log.answered(asked, ((rows,), {}), asked(rows))
        log.asked(wanted)
    return compare_passes(log)


def _finding(told: Populations) -> Finding:
    (check,) = [c for c in all_checks() if c.fault == "deployment.serving-parity"]
    assert not check.preview
    run = Run("x.py", (), "", {}, Ending("finished"), populations=told)
    (found,) = check.function(run)
    return found


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda x: x.flip(1), "channels"),
        (lambda x: x.flip(2), "upside down"),
        (lambda x: x.transpose(2, 3), "rows and columns exchanged"),
    ],
)
def test_the_change_that_heals_is_named(change: Any, name: str) -> None:
    told = _told(change(_pictures(2)).contiguous())
    assert told.put_back is not None and told.put_back.change == name
    assert _finding(told).status == "likely"


def test_rows_that_are_answered_as_well_are_left_alone() -> None:
    assert _told(_pictures(2)).put_back is None


def test_rows_of_another_world_are_healed_by_nothing() -> None:
    assert _told(_pictures(7)).put_back is None


def test_the_same_rows_and_parameters_with_lost_buffers_are_proven() -> None:
    copied = copy.deepcopy(_Red()).eval()
    copied.norm.running_mean = torch.tensor([0.0, 60.0])
    told = _told(_pictures(1), copied)
    found = _finding(told)
    assert found.status == "proven"
    assert found.evidence[0].kind == "exact"


def _dimmed(by_copy: bool) -> Populations:
    """Other pictures than those of the test, in another scale for each channel."""
    trained = _Red().eval()
    served = copy.deepcopy(trained) if by_copy else trained
    log = PassLog(SiteFinder(""))
    log.trains(trained, ((_pictures(0),), {}))
    scale, offset = (torch.tensor(v).view(3, 1, 1) for v in ([0.2, 0.1, 0.1], [0.5, 0.4, 0.0]))
    for asked, given, rows in (
        (trained, _pictures(1), _pictures(1)),
        (served, _pictures(2) * scale + offset, _pictures(2)),
    ):
        log.answered(asked, ((given,), {}), asked(given))
        log.asked(trained(rows).argmax(1))
    return compare_passes(log)


def test_a_copy_that_is_given_other_rows_in_another_scale_is_told() -> None:
    told = _dimmed(by_copy=True)
    assert told.put_back is not None and told.put_back.change == "the channels scaled as there"
    assert told.put_back.scores[2] > 0.9
    assert _finding(told).status == "likely"


def test_the_trained_model_may_be_tried_on_dimmed_pictures() -> None:
    assert _dimmed(by_copy=False).put_back is None
