from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.observe.statistics import engine as engine_module
from sawbones.observe.statistics.engine import StatisticsEngine, TensorStatistics
from sawbones.observe.statistics.foreach_lane import ForeachLane
from sawbones.schema.run import NO_GRADIENT, NOT_MEASURED, TENSOR_STATISTICS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning"),
]

Reference = Callable[..., dict[str, np.ndarray]]


@pytest.fixture(params=["triton", "foreach"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to measure on a device: the fused kernel, and torch's operators where Triton is
    missing.
    """
    if request.param == "foreach":
        monkeypatch.setattr(
            engine_module, "_lane", lambda device, where, params: ForeachLane(device, where)
        )
    return str(request.param)


@pytest.fixture
def no_waiting() -> Iterator[Callable[[bool], None]]:
    """Switches torch's own guard on: any operation that waits for the device raises."""
    yield lambda on: torch.cuda.set_sync_debug_mode("error" if on else "default")
    torch.cuda.set_sync_debug_mode("default")


def one_step(
    params: list[torch.Tensor],
    grads: list[torch.Tensor | None],
    new: list[torch.Tensor],
    **options: object,
) -> TensorStatistics:
    engine = StatisticsEngine()
    engine.before_step(0, params, grads, **options)  # type: ignore[arg-type]
    with torch.no_grad():
        for param, value in zip(params, new, strict=True):
            param.copy_(value)
    engine.after_step(0, params)
    (record,) = engine.drain()
    return record


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_statistic_agrees_with_float64(
    path: str, reference: Reference, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    shapes = [
        (7,),
        (300, 500),
        (1,),
        (16384,),
        (16385,),
        (15360,),
        (3, 700_001),
        (16384 * 600 + 5,),
    ]
    old = [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]
    grads: list[torch.Tensor | None] = [
        (torch.randn(shape, device="cuda") * 0.01).to(dtype) for shape in shapes
    ]
    grads[1][::2] = 0  # type: ignore[index]
    grads[6][0, ::3] = torch.finfo(dtype).tiny / 4  # type: ignore[index]
    grads[2] = None
    new = [(p.double() + 0.01 * torch.randn(p.shape, device="cuda")).to(dtype) for p in old]
    columns = one_step([p.clone() for p in old], grads, new).columns
    for name, expected in reference(old, grads, new).items():
        np.testing.assert_allclose(columns[name], expected, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("magnitude", [1e-40, 1e-30, 1e-22, 1e-11, 1.0, 1e11, 1e13, 1e22, 1e36])
def test_the_kernel_keeps_norms_whose_squares_leave_float32(magnitude: float) -> None:
    values = torch.full((10_000,), magnitude, device="cuda")
    columns = one_step([torch.zeros_like(values)], [values], [values]).columns
    expected = float(values[0].double()) * 100
    for name in ("grad_l2", "param_l2", "update_l2"):
        np.testing.assert_allclose(columns[name], [expected], rtol=1e-5, err_msg=name)


def test_nan_and_inf_are_stored_as_such_and_counted(path: str) -> None:
    broken, infinite, both = (torch.ones(20_000, device="cuda") for _ in range(3))
    broken[3] = float("nan")
    infinite[:2] = -float("inf")
    both[0], both[-1] = float("inf"), float("nan")
    grads: list[torch.Tensor | None] = [broken, infinite, both]
    params = [torch.ones(20_000, device="cuda") for _ in grads]
    columns = one_step(params, grads, [broken, infinite, both]).columns
    for name in ("grad_l2", "grad_max", "param_l2", "update_l2"):
        np.testing.assert_array_equal(
            columns[name], np.float32([np.nan, np.inf, np.nan]), err_msg=name
        )
    np.testing.assert_array_equal(columns["grad_nonfinite"], [1, 2, 2])


def test_odd_tensors_are_measured_or_say_that_they_were_not(
    path: str, reference: Reference
) -> None:
    torch.manual_seed(0)
    store = torch.randn(4001, device="cuda")
    channels_last = torch.randn(2, 3, 5, 5, device="cuda").to(memory_format=torch.channels_last)
    params = [
        store[1:2001].clone(),
        torch.randn(40, 60, device="cuda"),
        channels_last.clone(),
        torch.ones(6, 4, device="cuda"),
        torch.ones(5),
        torch.ones(3, device="cuda", dtype=torch.bfloat16),
        torch.empty(0, device="cuda"),
        torch.ones(3, device="meta"),
    ]
    grads: list[torch.Tensor | None] = [
        store[1:2001],  # not aligned to 16 bytes
        torch.randn(80, 60, device="cuda")[::2],  # leaves gaps in memory
        channels_last,
        torch.ones(1, device="cuda").expand(6, 4),  # one value, 24 times
        torch.full((5,), 3.0),
        torch.ones(3, device="cuda", dtype=torch.bfloat16),
        torch.empty(0, device="cuda"),
        None,
    ]
    columns = one_step(list(params), grads, list(params)).columns
    for name, expected in reference(params[:6], grads[:6], params[:6]).items():
        np.testing.assert_allclose(columns[name][:6], expected, rtol=1e-5, err_msg=name)
        assert columns[name][6] == NOT_MEASURED
        assert columns[name][7] == (NO_GRADIENT if name.startswith("grad_") else NOT_MEASURED)


def test_a_sparse_gradient_on_the_device_is_left_alone(path: str) -> None:
    embedding = nn.Embedding(50, 8, sparse=True, device="cuda")
    embedding(torch.tensor([1, 1, 4], device="cuda")).sum().backward()
    weight = embedding.weight.detach()
    columns = one_step([embedding.weight], [embedding.weight.grad], [weight.clone()]).columns
    assert columns.get("grad_l2", np.float32([NOT_MEASURED])).tolist() == [NOT_MEASURED]
    np.testing.assert_allclose(columns["param_l2"], [float(weight.double().norm())], rtol=1e-5)


def test_no_step_waits_for_the_device(path: str, no_waiting: Callable[[bool], None]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scale = torch.full((), 8.0, device="cuda")
    batch = torch.randn(32, 64, device="cuda")
    params = list(model.parameters())
    engine = StatisticsEngine(full_every=3)
    records: list[TensorStatistics] = []
    for step in range(20):
        no_waiting(True)
        optimizer.zero_grad(set_to_none=True)
        (model(batch).square().mean() * scale).backward()
        engine.before_step(step, params, [p.grad for p in params], scale=scale)
        optimizer.step()
        engine.after_step(step, params)
        records += engine.ready()
        no_waiting(False)
    records += engine.drain()
    assert [record.step for record in records] == list(range(20))
    whole = [r for r in records if set(r.columns) == set(TENSOR_STATISTICS)]
    if (
        path == "triton"
    ):  # every step while times are taken, then, since these steps are short, as the budget allows
        assert {r.step for r in whole} >= set(range(12))
    else:
        assert len(whole) == 9  # three first ones, and one in three
    assert all((r.columns["update_l2"] > 0).all() for r in whole)


def test_the_guard_against_waiting_does_catch_a_wait(no_waiting: Callable[[bool], None]) -> None:
    value = torch.ones(1, device="cuda")
    no_waiting(True)
    with pytest.raises(RuntimeError, match="synchroniz"):
        value.item()


def test_training_is_bit_identical_and_every_update_is_right(path: str) -> None:
    def train(
        watched: bool,
    ) -> tuple[list[float], torch.Tensor, list[TensorStatistics], list[list[float]]]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(64, 256), nn.Dropout(0.2), nn.Linear(256, 64)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
        params = list(model.parameters())
        engine = StatisticsEngine(full_every=1)
        losses, moved = [], []
        for step in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 64, device="cuda")).square().mean()
            loss.backward()
            old = [p.detach().double() for p in params]
            if watched:
                engine.before_step(step, params, [p.grad for p in params])
            optimizer.step()
            if watched:
                engine.after_step(step, params)
            moved.append(
                [float((p.detach().double() - q).norm()) for p, q in zip(params, old, strict=True)]
            )
            losses.append(loss.item())
        return losses, torch.cuda.get_rng_state(), engine.drain(), moved

    bare, watched = train(False), train(True)
    assert bare[0] == watched[0]
    assert torch.equal(bare[1], watched[1])
    measured = np.array([record.columns["update_l2"] for record in watched[2]])
    np.testing.assert_allclose(measured, np.array(watched[3]), rtol=1e-5)


def test_the_same_tensors_give_the_same_bits() -> None:
    torch.manual_seed(0)
    grad = torch.randn(5_000_001, device="cuda")
    params: list[torch.Tensor] = [torch.ones_like(grad)]
    first, second = (one_step(params, [grad], params).columns for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in TENSOR_STATISTICS)


def test_with_little_memory_updates_come_on_sampled_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from sawbones.observe.statistics import device_lane

    monkeypatch.setattr(device_lane, "KEPT_COPY_SHARE", 0.0)
    engine = StatisticsEngine(full_every=4, full_first=1)
    param = torch.ones(1000, device="cuda")
    for step in range(9):
        engine.before_step(step, [param], [torch.ones(1000, device="cuda")])
        param += 0.5
        engine.after_step(step, [param])
    records = engine.drain()
    assert [r.step for r in records if "update_l2" in r.columns] == [0, 4, 8]
    assert all("param_l2" in r.columns and "grad_max" in r.columns for r in records)
    for record in records:
        if "update_l2" in record.columns:
            np.testing.assert_allclose(record.columns["update_l2"], [0.5 * 1000**0.5], rtol=1e-5)


def test_another_stream_and_a_captured_graph_are_survived() -> None:
    param, grad = torch.ones(100_000, device="cuda"), torch.ones(100_000, device="cuda")
    engine = StatisticsEngine()
    for step, stream in enumerate(
        [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.current_stream()]
    ):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            engine.before_step(step, [param], [grad])
            param += 1
            engine.after_step(step, [param])
        torch.cuda.current_stream().wait_stream(stream)
    for record in engine.drain():
        np.testing.assert_allclose(record.columns["update_l2"], [100_000**0.5], rtol=1e-5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        engine.before_step(3, [param], [grad])
        param += 1
        engine.after_step(3, [param])
    assert engine.drain()[0].columns == {}
