"""Windows of a series, dealt out at random or cut at one moment."""

from __future__ import annotations

import pytest
import torch

from sawbones.observe.signals.later_windows import LaterWindows
from sawbones.schema import samples as kinds


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


def test_classified_windows_have_no_future_and_lie_between_trained_ones() -> None:
    order = torch.randperm(360, generator=torch.Generator().manual_seed(1))
    found = _seen(order, classified=True).record()
    assert found is not None
    assert (found.ahead, found.apart, found.by_chance) == (0, 0.0, 0.0)
    assert found.between > 0.9 * found.evaluated


def _classified(trained: torch.Tensor, *evaluated: torch.Tensor) -> kinds.LaterWindows | None:
    log = LaterWindows()
    for chunk in trained.split(20):
        log.saw("train", [chunk])
    for part in evaluated:
        log.saw("eval", [part])
    return log.record()


def _windows(stride: int = 4, width: int = 24) -> torch.Tensor:
    series = torch.randn(2000, 1, generator=torch.Generator().manual_seed(5))
    return series[:, 0].unfold(0, width, stride)


@pytest.mark.parametrize("held", [slice(400), slice(250, 400), slice(0, 94)])
def test_windows_of_a_part_cut_off_anywhere_lie_between_no_others(held: slice) -> None:
    rows = _windows()
    is_held = torch.zeros(len(rows), dtype=torch.bool)
    is_held[held] = True
    found = _classified(rows[~is_held], rows[is_held])
    assert found is not None
    assert found.between == 0


def test_windows_as_pictures_of_one_channel() -> None:
    rows = _windows()[torch.randperm(495, generator=torch.Generator().manual_seed(2))]
    found = _classified(rows[:380, None, None], rows[380:, None, None])
    assert found is not None
    assert found.between > 0.5 * found.evaluated


def test_a_score_on_other_crops_of_the_training_part_comes_apart() -> None:
    rows = _windows(1)
    past, later = rows[:1500], rows[1560:]
    found = _classified(past[::2], past[1:300:2], later)
    assert found is not None
    assert 0.6 < found.apart < 0.9


def test_windows_that_are_trained_on_only_later_do_not_count() -> None:
    rows = _windows(1)
    log = LaterWindows()
    for start in range(0, 1500, 300):
        log.saw("eval", [rows[start + 1 : start + 300 : 2]])
        log.saw("train", [rows[start : start + 300 : 2]])
    found = log.record()
    assert found is not None
    assert found.between == 0


def test_runs_of_four_letters_come_about_by_chance() -> None:
    letters = torch.randint(0, 4, (6000, 24), generator=torch.Generator().manual_seed(3))
    rows = torch.nn.functional.one_hot(letters, 4).float()
    found = _classified(rows[:5000], rows[5000:])
    assert found is not None
    assert found.between / found.evaluated < found.by_chance


def test_more_windows_than_are_kept() -> None:
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(1))
    series = torch.randn(5100, 30, generator=torch.Generator().manual_seed(0)).cumsum(0)
    rows = series.unfold(0, 40, 1)[:5000]
    log = LaterWindows()
    for chunk in order[:4000].split(100):
        log.saw("train", [rows[chunk]])
        log.asked(series[chunk + 40, 0])
    log.saw("eval", [rows[order[4000:]]])
    log.saw("eval", [rows[order[:4000]]])  # a score on the training part
    found = log.record()
    assert found is not None
    assert (found.ahead, found.evaluated) == (1, 1000)
    assert found.later > 0.95


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
    found = _asked(weights).record()
    assert found is not None
    assert found.ahead == 0
