from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.observe.statistics.engine import StatisticsEngine, TensorStatistics
from sawbones.schema.run import NO_GRADIENT, NOT_MEASURED, TENSOR_STATISTICS


def one_step(
    params: list[torch.Tensor],
    grads: list[torch.Tensor | None],
    new: list[torch.Tensor] | None = None,
    **options: object,
) -> TensorStatistics:
    engine = StatisticsEngine()
    engine.before_step(0, params, grads, **options)  # type: ignore[arg-type]
    engine.after_step(0, new if new is not None else params)
    (record,) = engine.drain()
    return record


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_statistic_agrees_with_float64(
    reference: Callable[..., dict[str, np.ndarray]], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    shapes = [(7,), (300, 500), (1,), (3, 700_001)]
    old = [torch.randn(shape).to(dtype) for shape in shapes]
    grads = [(torch.randn(shape) * 0.01).to(dtype) for shape in shapes]
    grads[1][::2] = 0
    grads[3][0, ::3] = torch.finfo(dtype).tiny / 4
    new = [(p.double() + 0.01 * torch.randn(p.shape)).to(dtype) for p in old]
    record = one_step(list(old), list(grads), new)
    for name, expected in reference(old, grads, new).items():
        np.testing.assert_allclose(record.columns[name], expected, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("magnitude", [1e-30, 1e-22, 1e22, 1e36])
def test_squares_that_leave_float32_still_give_the_norm(magnitude: float) -> None:
    gradient = torch.full((1000,), magnitude)
    engine = StatisticsEngine(full_every=1000, full_first=1)
    for step in range(3):
        engine.before_step(step, [torch.ones(1000)], [gradient])
        engine.after_step(step, [torch.ones(1000)])
    for record in engine.drain():
        np.testing.assert_allclose(
            record.columns["grad_l2"], [magnitude * np.sqrt(1000)], rtol=1e-5
        )


def test_nan_and_inf_are_stored_as_such_and_counted() -> None:
    broken = torch.ones(10)
    broken[3] = float("nan")
    infinite = torch.ones(10)
    infinite[:2] = -float("inf")
    params: list[torch.Tensor] = [torch.ones(10), torch.ones(10)]
    columns = one_step(params, [broken, infinite]).columns
    np.testing.assert_array_equal(columns["grad_l2"], np.float32([np.nan, np.inf]))
    np.testing.assert_array_equal(columns["grad_max"], np.float32([np.nan, np.inf]))
    np.testing.assert_array_equal(columns["grad_nonfinite"], [1, 2])
    np.testing.assert_array_equal(columns["grad_subnormal_share"], [0, 0])


def test_full_steps_are_the_first_the_regular_and_the_abnormal() -> None:
    engine = StatisticsEngine(full_every=20, full_first=2)
    param = torch.ones(8)
    for step in range(60):
        grad = torch.full((8,), float("nan") if step == 33 else 100.0 if step == 47 else 1.0)
        engine.before_step(step, [param], [grad])
        engine.after_step(step, [param])
    records = engine.ready()
    assert [record.step for record in records] == list(range(60))
    full = [record.step for record in records if "update_l2" in record.columns]
    assert full == [0, 1, 20, 33, 40, 47]
    assert all(set(record.columns) == {"grad_l2"} for record in records if record.step not in full)


def test_full_can_be_forced_and_forbidden() -> None:
    params: list[torch.Tensor] = [torch.ones(3)]
    assert set(one_step(params, [torch.ones(3)], full=True).columns) == set(TENSOR_STATISTICS)
    assert set(one_step(params, [torch.full((3,), float("nan"))], full=False).columns) == {
        "grad_l2"
    }


def test_a_step_that_was_skipped_has_gradients_only() -> None:
    engine = StatisticsEngine()
    param = torch.ones(3)
    engine.before_step(0, [param], [torch.ones(3)])
    engine.before_step(1, [param], [torch.ones(3)])
    engine.after_step(1, [param])
    skipped, taken = engine.ready()
    assert "grad_max" in skipped.columns and "param_l2" not in skipped.columns
    assert taken.columns["update_l2"].tolist() == [0.0]


def test_a_scale_is_divided_out_and_subnormal_is_judged_as_float16_saw_it() -> None:
    params: list[torch.Tensor] = [torch.ones(4), torch.ones(4)]
    stored = torch.tensor([3.0, 4.0, 1e-5, 0.0])
    for scale in (1024.0, torch.tensor(1024.0)):
        columns = one_step(params, [stored, None], scale=scale).columns
        np.testing.assert_allclose(columns["grad_l2"], [5 / 1024, NO_GRADIENT], rtol=1e-6)
        np.testing.assert_allclose(columns["grad_max"], [4 / 1024, NO_GRADIENT], rtol=1e-6)
        assert columns["grad_subnormal_share"][0] == 0.25
    columns = one_step(params, [stored / 1024, None], unscaled_from=torch.tensor(1024.0)).columns
    np.testing.assert_allclose(columns["grad_l2"], [5 / 1024, NO_GRADIENT], rtol=1e-6)
    assert columns["grad_subnormal_share"][0] == 0.25


def test_a_step_without_any_gradient_says_that_there_was_none() -> None:
    params: list[torch.Tensor] = [torch.ones(4), torch.ones(2)]
    columns = one_step(params, [None, None]).columns
    for name in TENSOR_STATISTICS:
        if name.startswith("grad_"):
            assert columns[name].tolist() == [NO_GRADIENT, NO_GRADIENT], name
    np.testing.assert_allclose(columns["param_l2"], [2.0, 2**0.5], rtol=1e-6)


class Wrapped(torch.Tensor):
    """A tensor without storage that answers every operator with an error, as a fake or quantised
    one may.
    """

    @staticmethod
    def __new__(cls) -> Wrapped:
        return torch.Tensor._make_wrapper_subclass(cls, (4,), dtype=torch.float32)  # type: ignore[attr-defined, no-any-return]

    @classmethod
    def __torch_dispatch__(
        cls, func: object, types: object, args: object = (), kwargs: object = None
    ) -> object:
        raise RuntimeError(f"{func} reached a wrapped tensor")


def test_what_cannot_be_measured_says_so_and_disturbs_nothing_else() -> None:
    odd: list[torch.Tensor] = [
        torch.empty(0),
        torch.empty(4, device="meta"),
        torch.ones(4, dtype=torch.complex64),
        torch.ones(4, dtype=torch.float8_e4m3fn),
        Wrapped(),
        nn.UninitializedParameter(),
        torch.ones(4),
    ]
    grads: list[torch.Tensor | None] = [*odd[:5], None, torch.full((4,), 2.0)]
    columns = one_step(odd, grads).columns
    for name in TENSOR_STATISTICS[:5]:
        assert columns[name][:5].tolist() == [NOT_MEASURED] * 5
        assert columns[name][5] == NO_GRADIENT
    assert columns["grad_l2"][6] == 4.0
    assert columns["param_l2"].tolist() == [NOT_MEASURED] * 6 + [2.0]
    assert one_step([], []).columns == {}
    assert one_step([torch.ones(2)], [None]).columns["param_l2"].tolist() == [pytest.approx(2**0.5)]


def test_sparse_and_strided_gradients_are_measured_by_their_values(
    reference: Callable[..., dict[str, np.ndarray]],
) -> None:
    torch.manual_seed(0)
    embedding = nn.Embedding(50, 8, sparse=True)
    embedding(torch.tensor([1, 1, 4])).square().sum().backward()
    params: list[torch.Tensor] = [embedding.weight, torch.ones(6, 4).t(), torch.ones(6, 4)]
    grads = [embedding.weight.grad, torch.randn(6, 4).t(), torch.randn(12, 4)[::2]]
    columns = one_step(params, list(grads)).columns
    for name, expected in reference(params, grads, params).items():
        np.testing.assert_allclose(columns[name], expected, rtol=1e-5, err_msg=name)


def test_training_is_bit_identical_and_the_random_stream_untouched() -> None:
    def train(watched: bool) -> tuple[list[float], torch.Tensor]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        engine = StatisticsEngine(full_every=4)
        params = list(model.parameters())
        losses = []
        for step in range(20):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 8)).square().mean()
            loss.backward()
            if watched:
                engine.before_step(step, params, [p.grad for p in params])
            optimizer.step()
            if watched:
                engine.after_step(step, params)
                assert len(engine.ready()) == 1
            losses.append(loss.item())
        return losses, torch.get_rng_state()

    bare, watched = train(False), train(True)
    assert bare[0] == watched[0]
    assert torch.equal(bare[1], watched[1])


def test_modes_autocast_and_graph_building_around_the_step_change_nothing() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    param = nn.Parameter(torch.ones(4, 4))
    grad = torch.full((4, 4), 2.0, requires_grad=True) * 1  # as with create_graph=True
    version = (param._version, grad._version)
    with (
        torch.device("meta"),
        torch.autocast("cpu", torch.bfloat16),
        FlopCounterMode(display=False),
    ):
        columns = one_step([param], [grad]).columns
    assert columns["grad_l2"].tolist() == [8.0]
    assert columns["param_l2"].tolist() == [4.0]
    assert (param._version, grad._version) == version


def test_two_optimizers_take_turns_and_models_that_are_gone_are_let_go() -> None:
    engine = StatisticsEngine(full_first=1, full_every=1000)
    first, second = [torch.ones(4)], [torch.ones(4), torch.ones(2)]
    for step in range(1, 5):
        params = first if step % 2 else second
        engine.before_step(step, params, [torch.ones_like(p) for p in params])
        engine.after_step(step, params)
    assert [len(r.columns["grad_l2"]) for r in engine.ready()] == [1, 2, 1, 2]
    for step in range(10):
        params = [torch.ones(3)]
        engine.before_step(step, params, [torch.ones(3)])
        engine.after_step(step, params)
        del params
    assert len(engine._plans) <= 3


def test_a_sharded_parameter_is_measured_by_its_local_part() -> None:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (2,))
        param = nn.Parameter(DTensor.from_local(torch.ones(4, 2), mesh, [Shard(0)]))
        grad = DTensor.from_local(torch.full((4, 2), 3.0), mesh, [Shard(0)])
        columns = one_step([param], [grad]).columns
    finally:
        dist.destroy_process_group()
    np.testing.assert_allclose(columns["grad_l2"], [3.0 * 8**0.5], rtol=1e-6)
    np.testing.assert_allclose(columns["param_l2"], [8**0.5], rtol=1e-6)
    assert columns["update_l2"].tolist() == [0.0]


def test_a_compiled_model_is_watched_without_recompiling() -> None:
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    model = nn.Linear(4, 4)
    compiled = torch.compile(copy.deepcopy(model), backend=counter)
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    engine = StatisticsEngine(full_every=2)
    params = list(compiled.parameters())
    for step in range(6):
        optimizer.zero_grad()
        compiled(torch.ones(2, 4)).sum().backward()
        engine.before_step(step, params, [p.grad for p in params])
        optimizer.step()
        engine.after_step(step, params)
    assert counter.frame_count == 1
    assert len(engine.drain()) == 6


def test_a_large_model_is_copied_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawbones.observe.statistics.foreach_lane.COPIED", 2 * 400)
    params = [torch.zeros(100) for _ in range(5)]  # 400 bytes each
    engine = StatisticsEngine(full_every=1)
    measured: list[list[int]] = []
    for step in range(5):
        engine.before_step(step, params, [torch.ones(100) for _ in params])
        for param in params:
            param += 1.0
        engine.after_step(step, params)
        (record,) = engine.drain()
        updates = record.columns["update_l2"]
        measured.append(np.flatnonzero(updates != NOT_MEASURED).tolist())
        np.testing.assert_allclose(updates[measured[-1]], 10.0)
        assert not np.any(record.columns["param_l2"] == NOT_MEASURED)
    assert measured == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4]]
