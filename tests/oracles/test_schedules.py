"""Warm-up + cosine against torch's schedulers."""

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from sawbones.oracles.arguments import ValueOutOfRange
from sawbones.oracles.schedules import warmup_cosine


def torch_series(make, num_steps, lr=0.5):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler, rates = make(optimizer), []
    for _ in range(num_steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize(("warmup", "total", "min_lr"), [(4, 20, 0.0), (2, 3, 0.1), (10, 37, 0.02)])
def test_schedule_equals_torchs_linear_and_cosine_schedulers(warmup, total, min_lr):
    rising = torch_series(
        lambda o: LinearLR(o, start_factor=1 / warmup, total_iters=warmup - 1), warmup
    )
    falling = torch_series(
        lambda o: CosineAnnealingLR(o, T_max=total - warmup, eta_min=min_lr), total - warmup + 1
    )
    ours = warmup_cosine(
        np.arange(total + 1), peak_lr=0.5, warmup_steps=warmup, total_steps=total, min_lr=min_lr
    )
    np.testing.assert_allclose(ours, rising + falling, rtol=1e-12, atol=1e-15)


def test_from_zero_starts_one_step_later_and_shares_the_cosine():
    steps = np.arange(20)
    settings = {"peak_lr": 0.5, "warmup_steps": 4, "total_steps": 20}
    late = warmup_cosine(steps, **settings, from_zero=True)
    rising = torch_series(lambda o: LinearLR(o, start_factor=1e-12, total_iters=4), 4)
    np.testing.assert_allclose(late[:4], rising, atol=1e-11)
    np.testing.assert_array_equal(late[4:], warmup_cosine(steps, **settings)[4:])


def test_no_warm_up_a_scalar_step_and_the_time_after_the_end():
    settings = {"peak_lr": 1.0, "warmup_steps": 0, "total_steps": 10, "min_lr": 0.1}
    assert float(warmup_cosine(0, **settings)) == 1.0
    assert float(warmup_cosine(5, **settings)) == pytest.approx(0.55)
    np.testing.assert_allclose(warmup_cosine([10, 11, 500], **settings), 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"warmup_steps": 10},
            r"warmup_steps is 10; expected 0 <= warmup_steps < total_steps = 10",
        ),
        ({"step": -1}, r"step is -1; expected 0 or more"),
        ({"step": 0.5}, r"step has dtype float64; expected integers"),
        ({"min_lr": 2.0}, r"peak_lr is 1.0; expected a number in \[2, inf\)"),
    ],
)
def test_a_wrong_value_is_named_with_the_expected_one(change, message):
    with pytest.raises(ValueOutOfRange, match=message):
        warmup_cosine(**{"step": 0, "peak_lr": 1.0, "warmup_steps": 2, "total_steps": 10, **change})
