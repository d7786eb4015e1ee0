"""The step protocol on hand-written event sequences: legal orders stay silent, each broken one is
named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sawbones.faults import read
from sawbones.faults.loop.accumulation_remainder import check as accumulation_remainder
from sawbones.faults.loop.clip_after_step import check as clip_after_step
from sawbones.faults.loop.clip_before_unscale import check as clip_before_unscale
from sawbones.faults.loop.scaler_misuse import check as scaler_misuse
from sawbones.faults.loop.scheduler_order import check as scheduler_order
from sawbones.faults.loop.zero_grad_misplaced import check as zero_grad_misplaced
from sawbones.schema import STEP_COLUMNS, Batch, Ending, Event, Run, Site

DATA: dict[str, dict[str, Any]] = {
    "scale": {"scale": 1024.0},
    "backward": {"scaled": True, "value": 1.0},
    "clip": {"fn": "clip_grad_norm_", "max_norm": 1.0, "norm": 2048.0},
    "step": {"optimizer": 0, "skipped": False, "closure": False},
    "zero_grad": {"target": "optimizer", "optimizer": 0},
    "schedule": {"scheduler": 0, "initial": False, "lr_before": [0.1], "lr_after": [0.1]},
}


def run_of(*kinds: str, steps: int = 6, grad_norm: float = 2.0) -> Run:
    """A run that repeats the given events; each kind has one line of its own."""
    events: list[Event] = []
    for step in range(steps):
        at, micro = step, 0
        for kind in kinds:
            line = 10 + list(DATA).index(kind) if kind in DATA else 30
            events.append(
                Event(
                    len(events),
                    kind,
                    at,
                    micro,
                    "train",
                    0.0,
                    Site("train.py", line),
                    0,
                    dict(DATA.get(kind, {})),
                )
            )
            micro += kind == "backward"
            at += kind == "step"
    table = {name: np.zeros(steps) for name in STEP_COLUMNS}
    table["step"], table["grad_norm"] = np.arange(steps, dtype=float), np.full(steps, grad_norm)
    return Run("train.py", (), "", {}, Ending("finished"), events=tuple(events), steps=table)


@pytest.mark.parametrize(
    "order",
    [
        ("zero_grad", "forward", "backward", "step"),
        ("forward", "backward", "step", "zero_grad"),
        ("forward", "backward", "forward", "backward", "clip", "step", "zero_grad", "schedule"),
        (
            "forward",
            "scale",
            "backward",
            "unscale",
            "clip",
            "step",
            "scaler_step",
            "scaler_update",
            "zero_grad",
        ),
    ],
)
def test_legal_orders_stay_silent(order: tuple[str, ...]) -> None:
    run = run_of(*order)
    for check in (
        "clip-after-step",
        "clip-before-unscale",
        "scheduler-order",
        "zero-grad-misplaced",
    ):
        assert read(run, f"loop.{check}", strict=True).findings == (), check


def test_a_clip_after_the_step_is_idle_and_named_at_its_own_line() -> None:
    (finding,) = clip_after_step.check(run_of("forward", "backward", "step", "clip", "zero_grad"))
    assert (finding.status, finding.where[0].line) == ("proven", 12)


def test_a_clip_after_the_step_that_no_gradient_reaches_is_only_suspected() -> None:
    (finding,) = clip_after_step.check(
        run_of("forward", "backward", "step", "clip", "zero_grad", grad_norm=0.5)
    )
    assert finding.status == "suspected"


def test_a_clip_on_scaled_gradients_is_named_with_its_real_limit() -> None:
    order = (
        "forward",
        "scale",
        "backward",
        "clip",
        "step",
        "scaler_step",
        "scaler_update",
        "zero_grad",
    )
    (finding,) = clip_before_unscale.check(run_of(*order))
    assert finding.status == "proven"
    assert finding.evidence[1].value == pytest.approx(1.0 / 1024.0)


def test_clearing_before_every_micro_batch_is_named() -> None:
    order = ("zero_grad", "forward", "backward", "zero_grad", "forward", "backward", "step")
    (finding,) = zero_grad_misplaced.check(run_of(*order))
    assert "only the last counts" in finding.title


MICRO = ("forward", "backward")


def test_clearing_before_the_last_micro_batch_alone_is_named() -> None:
    (finding,) = zero_grad_misplaced.check(run_of(*MICRO, *MICRO, "zero_grad", *MICRO, "step"))
    assert "of 3 accumulated backward passes only the last counts" in finding.title
    assert not list(zero_grad_misplaced.check(run_of("zero_grad", *MICRO, *MICRO, *MICRO, "step")))


def with_epochs(run: Run, *epochs: int) -> Run:
    """The same run, whose every step is led to by batches of these epochs, counted on."""
    batches = tuple(
        Batch(step, number, "train", "loader:0", 0.0, (), epoch=step + epoch)
        for step in range(run.num_steps)
        for number, epoch in enumerate(epochs)
    )
    return replace(run, batches=batches)


def test_one_step_an_epoch_and_its_remainder_cleared_is_a_remainder_that_is_dropped() -> None:
    order = (*MICRO, "zero_grad", *MICRO, *MICRO, "step")
    run = with_epochs(run_of(*order), 0, 1, 1)
    (finding,) = accumulation_remainder.check(run)
    assert "The last 1 micro-batches of every epoch are thrown away" in finding.title
    assert not list(zero_grad_misplaced.check(run))


def drawn(run: Run, per_epoch: int, used: int, kept: int) -> Run:
    """The same run, its micro-batches from a loader of which some are never used; in the end every
    seventh batch was written down.
    """
    batches, index = [], 0
    for epoch in range(run.num_steps):
        for number in range(per_epoch):
            # what is left over is drawn before the next step is taken
            step = epoch if number < used else epoch + 1
            if index < kept or index % 7 == 0:
                tensors = ({"path": "", "shape": [4, 2], "dtype": "float32"},)
                batch = Batch(step, 0, "train", "loader:0", 0.0, tensors, epoch=epoch, index=index)
                batches.append(batch)
            index += 1
    return replace(run, batches=tuple(batches))


@pytest.mark.parametrize("kept", [15, 1000])
def test_micro_batches_that_never_fill_a_window_are_named_in_a_long_run_too(kept: int) -> None:
    run = run_of(*MICRO, *MICRO, *MICRO, "step", "zero_grad")
    (finding,) = accumulation_remainder.check(drawn(run, 5, 3, kept))
    assert finding.title.startswith("The last 2 micro-batches of every epoch are drawn")
    assert not list(accumulation_remainder.check(drawn(run, 3, 3, kept)))


def test_a_scheduler_that_moves_before_the_first_step_is_named() -> None:
    (finding,) = scheduler_order.check(
        run_of("forward", "backward", "schedule", "step", "zero_grad")
    )
    assert finding.where[0].line == 15


def two_optimizers(*parts: tuple[str, int | None, dict[str, Any]], rounds: int = 4) -> Run:
    """Events that name the optimizer they belong to; every step has a number of its own."""
    events: list[Event] = []
    at = 0
    for _ in range(rounds):
        for line, (kind, optimizer, data) in enumerate(parts):
            given = {
                **DATA.get(kind, {}),
                **({} if optimizer is None else {"optimizer": optimizer}),
                **data,
            }
            number = at - 1 if kind == "scaler_step" else at
            events.append(
                Event(
                    len(events),
                    kind,
                    number,
                    0,
                    "train",
                    0.0,
                    Site("train.py", 10 + line),
                    0,
                    given,
                )
            )
            at += kind == "step"
    return Run("train.py", (), "", {}, Ending("finished"), events=tuple(events))


def test_an_optimizer_beside_the_scaler_is_named_whichever_comes_first() -> None:
    scaled, passed = [("scale", None, {}), ("backward", None, {})], [("step", 0, {})]
    through: list[tuple[str, int | None, dict[str, Any]]] = [
        ("step", 1, {}),
        ("scaler_step", 1, {}),
        ("scaler_update", None, {}),
    ]
    for order, line in (([*scaled, *passed, *through], 12), ([*scaled, *through, *passed], 15)):
        (finding,) = scaler_misuse.check(two_optimizers(*order))
        assert (finding.status, finding.where[0].line) == ("proven", line)


def test_a_discriminator_in_float32_beside_a_scaled_generator_is_right() -> None:
    plain: list[tuple[str, int | None, dict[str, Any]]] = [
        ("backward", None, {"scaled": False}),
        ("step", 0, {}),
    ]
    scaled: list[tuple[str, int | None, dict[str, Any]]] = [
        ("scale", None, {}),
        ("backward", None, {}),
        ("step", 1, {}),
        ("scaler_step", 1, {}),
        ("scaler_update", None, {}),
    ]
    assert list(scaler_misuse.check(two_optimizers(*plain, *scaled))) == []
