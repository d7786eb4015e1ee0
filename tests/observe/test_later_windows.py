"""Windows of a series, dealt out at random or cut at one moment."""

from __future__ import annotations

import pytest
import torch

from sawbones.observe.signals.later_windows import LaterWindows


def _seen(
    order: torch.Tensor, layout: str = "time first", ahead: int = 1, classified: bool = False
) -> LaterWindows:
    series = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)).cumsum(0)
    rows = torch.stack([series[i : i + 24] for i in range(360)])
    targets = torch.stack([series[i + 23 + ahead, 0] for i in range(360)]) * 3.0 + 1.0
    rows = rows.transpose(1, 2).contiguous() if layout == "channels first" else rows
    log = LaterWindows()
    for chunk in order[:280].split(20):
        log.saw("train", [rows[chunk]])
        log.asked((targets[chunk] > 0).long() if classified else targets[chunk])
    log.saw("eval", [rows[order[280:]]])
    return log


@pytest.mark.parametrize("layout", ["time first", "channels first"])
@pytest.mark.parametrize("ahead", [1, 5])
def test_windows_dealt_out(layout: str, ahead: int) -> None:
    found = _seen(
        torch.randperm(360, generator=torch.Generator().manual_seed(1)), layout, ahead
    ).record()
    assert found is not None
    assert (found.ahead, found.steps) == (ahead, 24)
    assert found.later > 0.95


def test_windows_cut_at_one_moment() -> None:
    found = _seen(torch.arange(360)).record()
    assert found is not None
    assert found.later == 0.0


def test_classified_windows_are_left_alone() -> None:
    assert (
        _seen(
            torch.randperm(360, generator=torch.Generator().manual_seed(1)), classified=True
        ).record()
        is None
    )


ORDER = torch.randperm(360, generator=torch.Generator().manual_seed(1))


def _asked(targets: torch.Tensor) -> LaterWindows:
    """Windows of 24 steps dealt out at random; `targets` are given as sums over a series."""
    series = torch.randn(400, generator=torch.Generator().manual_seed(0)).cumsum(0)
    rows = series.unfold(0, 24, 1)[:360]
    wanted = series.unfold(0, 36, 1)[:360] @ targets
    log = LaterWindows()
    for chunk in ORDER[:280].split(20):
        log.saw("train", [rows[chunk]])
        log.asked(wanted[chunk])
    log.saw("eval", [rows[ORDER[280:]]])
    return log


def test_the_mean_of_later_steps_is_the_future_too() -> None:
    weights = torch.zeros(36)
    weights[24:31] = 1 / 7
    found = _asked(weights).record()
    assert found is not None
    assert found.ahead == 7
    assert found.later > 0.95


def test_a_sum_of_steps_that_the_window_holds_is_no_future() -> None:
    weights = torch.zeros(36)
    weights[20:24] = 1 / 4
    assert _asked(weights).record() is None
