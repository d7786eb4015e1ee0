"""Which came first: the gradient, the loss, or steps that were too large."""

from __future__ import annotations

import numpy as np

from sawbones.stats.divergence import first_trouble, gradient_leaps, recent_ratio


def test_a_gradient_that_leaps_at_an_ordinary_loss_is_an_explosion() -> None:
    losses = np.array([1.0, 0.9, 0.8, 0.8, 0.7, 0.8, 600.0, np.nan])
    norms = np.array([1.0, 1.1, 0.9, 1.0, 1.0, 200.0, 9e3, np.nan])
    (leap,) = gradient_leaps(norms, losses, 4.0)
    assert (leap.step, leap.norm, leap.worst) == (5, 200.0, np.inf)
    assert first_trouble(losses) == 6


def test_a_loss_and_a_gradient_that_grow_together_are_none() -> None:
    losses = np.array([1.0, 3.6, 1.7e3, 3.1e6, np.inf])
    norms = np.array([0.8, 10.0, 1.7e3, 4.1e6, np.nan])
    assert gradient_leaps(norms, losses, 4.0) == []


def test_a_bad_batch_is_no_explosion() -> None:
    losses = np.array([1.0, 0.9, 0.8, 0.7, 2e6, 0.9, 1.2, 1.1])
    norms = np.array([1.0, 1.0, 1.0, 1.0, 9e2, 1.0, 1.0, 1.0])
    assert gradient_leaps(norms, losses, 4.0) == []
    assert first_trouble(losses) == 4


def test_a_run_that_goes_its_way_has_no_trouble() -> None:
    losses = np.linspace(2.0, 0.1, 40) + 0.1 * np.sin(np.arange(40))
    assert first_trouble(losses) is None
    assert gradient_leaps(np.where(np.arange(40) % 7, 1.0, 30.0), losses, 4.0) == []


def test_the_last_measured_updates_count() -> None:
    ratios = np.array([0.5, np.nan, 0.01, 0.01, np.nan, 0.01, 0.01, 0.01, 0.9])
    assert recent_ratio(ratios, 8) == 0.01
    assert np.isnan(recent_ratio(ratios[:0], None))
