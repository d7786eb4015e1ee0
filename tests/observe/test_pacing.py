"""What is dear waits until it is affordable, and is not forgotten meanwhile."""

from __future__ import annotations

from sawbones.observe.pacing import Pace

SHARE, FREE_S = 0.0125, 0.3


def taken(planned: set[int], step_s: float, cost_s: float, num_steps: int) -> list[int]:
    pace, elapsed, found = Pace(SHARE, FREE_S), 0.0, []
    for step in range(num_steps):
        if (step in planned or pace.is_due) and pace.allows(elapsed):
            pace.paid(cost_s)
            elapsed += cost_s
            found.append(step)
        elapsed += step_s
    return found


def test_cheap_ones_come_when_they_are_planned():
    assert taken({0, 3}, step_s=0.001, cost_s=0.05, num_steps=100) == [0, 3]


def test_a_dear_one_is_put_off_until_the_run_has_paid_for_it():
    first, second = taken({0, 3}, step_s=0.026, cost_s=0.27, num_steps=3000)
    assert first == 0 and 2 * 0.27 / SHARE < second * 0.026 + 0.27 + 0.026 < 2 * 0.27 / SHARE + 0.1


def test_all_of_them_together_stay_within_their_share():
    planned = {0, 3, *range(1000, 20_000, 1000)}
    found = taken(planned, step_s=0.026, cost_s=0.27, num_steps=20_000)
    assert len(found) > 10
    assert all(
        (k + 1) * 0.27 <= max(FREE_S, SHARE * (step * 0.026 + k * 0.27)) + 1e-6
        for k, step in enumerate(found)
        if k
    )
