"""Parameters measured on a stream of their own beside the next forward pass, and the whole recorder
on a device.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import sawbones
from sawbones.observe.options import Options
from sawbones.observe.statistics import device_budget
from sawbones.observe.statistics.engine import StatisticsEngine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning"),
]


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Any operation that waits for the device raises from the moment the test switches this on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this mode is a prototype
        torch.cuda.set_sync_debug_mode("default")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.fixture
def on_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where steps are long: nothing to calibrate, parameters on every step."""
    monkeypatch.setattr(device_budget.DeviceBudget, "is_calibrating", False)
    monkeypatch.setattr(device_budget, "WINDOW", range(0))


def test_overlapped_and_in_order_passes_give_the_same_numbers(
    no_waiting: None, on_every_step: None
) -> None:
    torch.manual_seed(0)
    params = [torch.randn(shape, device="cuda") for shape in ((1000, 1000), (777,), (512, 2048))]
    grads = [torch.randn_like(p) for p in params]
    big = torch.randn(4096, 4096, device="cuda")
    engines = {True: StatisticsEngine(), False: StatisticsEngine()}
    expected = []
    for step in range(12):
        if step == 2:
            torch.cuda.set_sync_debug_mode("error")
        for engine in engines.values():
            engine.before_step(step, params, grads)
        before = [p.clone() for p in params]
        for p, g in zip(params, grads, strict=True):
            p.add_(g, alpha=-0.01 * (step + 1))
        for engine in engines.values():
            engine.after_step(step, params)
        expected.append(
            [(p.double() - q.double()).norm() for p, q in zip(params, before, strict=True)]
        )
        engines[True].overlap()
        for _ in range(3):
            big = torch.tanh(big @ big)  # the forward pass
    torch.cuda.set_sync_debug_mode("default")
    aside, in_order = (engines[overlapped].drain() for overlapped in (True, False))
    assert len(aside) == len(in_order) == 12
    for step, (one, other) in enumerate(zip(aside, in_order, strict=True)):
        assert set(one.columns) == set(other.columns) and "update_l2" in one.columns
        for name in one.columns:
            np.testing.assert_array_equal(
                one.columns[name], other.columns[name], err_msg=f"{name} at {step}"
            )
        np.testing.assert_allclose(
            one.columns["update_l2"], [float(e) for e in expected[step]], rtol=1e-5
        )


def test_the_next_step_waits_for_the_pass_before_it(on_every_step: None) -> None:
    """A device that is far behind: without the wait the parameters would be overwritten while they
    are being read.
    """
    params = [torch.zeros(1 << 24, device="cuda")]
    grads = [torch.ones_like(params[0])]
    engine = StatisticsEngine()
    for step in range(6):
        engine.before_step(step, params, grads)
        params[0].add_(1.0)
        engine.after_step(step, params)
        side_work = torch.cuda.Stream()
        with torch.cuda.stream(side_work):
            torch.cuda._sleep(20_000_000)
        engine.overlap()
    records = engine.drain()
    size = 4096.0  # square root of the number of values
    np.testing.assert_allclose(
        [r.columns["param_l2"][0] for r in records], [size * (s + 1) for s in range(6)], rtol=1e-5
    )
    np.testing.assert_allclose([r.columns["update_l2"][0] for r in records], [size] * 6, rtol=1e-5)


def test_short_steps_measure_parameters_rarely_and_updates_are_still_those_of_one_step(
    no_waiting: None,
) -> None:
    torch.manual_seed(0)
    params = [torch.randn(3_000_000, device="cuda")]
    grads = [torch.randn_like(params[0])]
    engine = StatisticsEngine(full_every=10**6)
    expected = []
    for step in range(120):
        if step == 5:
            torch.cuda.set_sync_debug_mode("error")
        engine.before_step(step, params, grads)
        params[0].add_(grads[0], alpha=-0.01 * (step + 1))
        engine.after_step(step, params)
        engine.overlap()
        expected.append(0.01 * (step + 1))
    torch.cuda.set_sync_debug_mode("default")
    records = engine.drain()
    assert len(records) == 120 and all(r.columns["grad_l2"][0] > 0 for r in records)
    taken = [r for r in records if "update_l2" in r.columns]
    assert {r.step for r in taken} >= set(range(12)) and 12 < len(taken) < 100
    norm = float(grads[0].double().norm())
    np.testing.assert_allclose(
        [r.columns["update_l2"][0] for r in taken],
        [expected[r.step] * norm for r in taken],
        rtol=1e-4,
    )


def test_the_whole_recorder_waits_for_nothing_on_shallow_steps(
    tmp_path: Path, no_waiting: None
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    x, y = torch.randn(32, 64, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    losses = []
    with sawbones.watch(
        model, optimizer, out=tmp_path / "run", options=Options(deep_steps=(), deep_every=0)
    ) as watching:
        for step in range(40):
            if step == 3:
                torch.cuda.set_sync_debug_mode("error")
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=True)
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
        torch.cuda.set_sync_debug_mode("default")
    run = watching.close()
    assert run.num_steps == 40 and not run.off
    np.testing.assert_array_equal(run.steps["loss"], [float(v) for v in losses])
    assert np.all(run.steps["grad_norm"] <= 0.5001) and np.all(run.steps["update_norm"][:12] > 0)
    assert all(e.data["value"] == run.steps["loss"][e.step] for e in run.of_kind("backward"))
    assert all(e.data["norm"] > 0 for e in run.of_kind("clip"))


def test_a_scaler_on_the_device_is_recorded_with_its_scale_and_skips(tmp_path: Path) -> None:
    model = nn.Linear(8, 1).cuda()
    results = {}
    for fused in (False, True):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
        scaler = torch.amp.GradScaler("cuda", init_scale=8.0, growth_interval=100)
        options = Options(deep_steps=(), deep_every=0)
        with sawbones.watch(
            model, optimizer, out=tmp_path / str(fused), options=options
        ) as watching:
            for step in range(4):
                optimizer.zero_grad()
                loss = model(torch.ones(4, 8, device="cuda")).square().mean() * (
                    float("inf") if step == 1 else 1.0
                )
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        run = watching.close()
        assert run.steps["scale"].tolist() == [8.0, 8.0, 4.0, 4.0]
        assert [e.data["skipped"] for e in run.of_kind("step")] == [False, True, False, False]
        results[fused] = run.steps["grad_norm"]
    assert np.isfinite(results[True][[0, 2, 3]]).all() and not np.isfinite(results[True][1])
