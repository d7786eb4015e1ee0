"""The operator that made a value or gradient that is not finite is kept with what it was given, and
shows it again alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.capture.conftest import Recorded
from tests.capture.made import forge
from torch import nn

from sawbones.capture import nonfinite
from sawbones.capture.bundle import Bundle, read_bundle
from sawbones.capture.errors import CaptureError
from sawbones.capture.freezer import Freezer, Settings
from sawbones.capture.graph import walk
from sawbones.capture.nonfinite import bad_gradient, bad_value, outcome_of
from sawbones.capture.randomness import Streams
from sawbones.capture.rebuilding import first_bad, read_back
from sawbones.capture.replay import replay
from sawbones.observe.hooks import install_all
from sawbones.observe.options import Options
from sawbones.observe.recorder import Recorder
from sawbones.observe.scalars import ScalarReader

LIMIT = 1 << 20


class Distance(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt((x * self.scale).square().sum(1))


def recorder_of(module: nn.Module, *args: torch.Tensor) -> Any:
    return SimpleNamespace(
        last_call=(module, args, {}), sites=SimpleNamespace(find=lambda: None), depth=0
    )


def without_source(parts: dict[str, bytes]) -> None:
    del parts["source/train.py"]
    for key in (b'"working_folder":"', b'"script_path":"'):
        parts["environment.json"] = parts["environment.json"].replace(key, key + b"/nowhere")


def test_without_source_the_operator_that_made_the_nan_is_replayed(
    loader_run: Recorded, tmp_path: Path
) -> None:
    bundle = read_bundle(forge(loader_run.bundles[0], tmp_path / "bare.sawbones", without_source))
    found = replay(bundle)
    assert (found.same, found.way, found.outcome["kind"]) == (True, "operator", "nonfinite loss")
    assert "holds no source" in found.tried[0]
    assert "torch.nn.functional.linear" in found.text
    assert "train.py:" in found.text


def test_an_operator_that_gives_other_bits_is_told(loader_run: Recorded, tmp_path: Path) -> None:
    def lie(parts: dict[str, bytes]) -> None:
        without_source(parts)
        parts["state.json"] = parts["state.json"].replace(b'["prints",["', b'["prints",["0')

    found = replay(read_bundle(forge(loader_run.bundles[0], tmp_path / "other.sawbones", lie)))
    assert (found.same, found.way) == (False, "operator")
    assert "other bits" in found.differences[0]


def test_only_operators_of_torch_give_values(loader_run: Recorded, tmp_path: Path) -> None:
    def harm(parts: dict[str, bytes]) -> None:
        without_source(parts)
        parts["state.json"] = parts["state.json"].replace(
            b"torch.nn.functional.linear", b"torch.hub.load"
        )

    with pytest.raises(CaptureError, match="no operator of torch"):
        replay(read_bundle(forge(loader_run.bundles[0], tmp_path / "harm.sawbones", harm)))


def test_a_logarithm_in_the_loss_is_read_back_from_the_graph() -> None:
    model = nn.Linear(4, 3)
    x, wanted = torch.ones(5, 4), torch.zeros(5, 3)
    loss = -(wanted * torch.log(torch.relu(model(x) - 100.0))).sum(1).mean()
    call, why = bad_value(recorder_of(model, x), loss, Streams().read(), None, LIMIT)
    assert call is not None, why
    assert (call["function"], call["args"][0].tolist()) == ("torch.log", torch.zeros(5, 3).tolist())
    assert outcome_of(call) == {"bad": 15, "of": 15, "prints": call["prints"]}


# Where there is a device, autograd has threads for it from the first backward pass on.
needs_forks = pytest.mark.skipif(
    torch.cuda.is_available(), reason="autograd cannot be used in a fork beside a device"
)


@needs_forks
def test_a_gradient_at_zero_is_found_in_the_repeated_model() -> None:
    before = torch.get_rng_state()
    call, why = bad_gradient(
        recorder_of(Distance(), torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])),
        Streams().read(),
        None,
        1.0,
        LIMIT,
    )
    assert call is not None, why
    assert (call["function"], call["gives"]) == ("torch.sqrt", "gradient")
    assert outcome_of(call) == {"bad": 1, "of": 2, "prints": call["prints"]}
    assert torch.equal(before, torch.get_rng_state())


def test_the_training_process_stays_as_it_was() -> None:
    """The repeated call runs in a fork: buffers, gradients and random streams are the host's
    own.
    """
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = torch.full((2, 3), math.inf)
    before = [t.clone() for t in model.state_dict().values()]
    rng = torch.get_rng_state()
    loss = torch.tensor(math.nan, requires_grad=True) * 1
    call, why = bad_value(recorder_of(model, x), loss, Streams().read(), None, LIMIT)
    assert call is not None, why
    assert call["function"] == "torch.nn.functional.linear"
    assert all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values(), strict=True))
    assert torch.equal(rng, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())


def test_what_is_too_large_or_cannot_be_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = nn.Linear(3, 2), torch.full((2, 3), math.inf)
    loss = model(x).sum()
    assert "MB" in bad_value(recorder_of(model, x), loss, Streams().read(), None, 8)[1]
    fine = model(torch.ones(2, 3)).sum()
    assert bad_value(recorder_of(model, torch.ones(2, 3)), fine, Streams().read(), None, LIMIT)[
        1
    ].startswith("no single operator")
    monkeypatch.setattr(nonfinite, "SECONDS", 0.0)
    assert "took over" in bad_value(recorder_of(model, x), loss, Streams().read(), None, LIMIT)[1]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: (x / (x - x).sum(1, keepdim=True)).mean(), "torch.div"),
        (
            lambda x: nn.functional.mse_loss(x * 1e30, torch.zeros_like(x)),
            "torch.nn.functional.mse_loss",
        ),
        (lambda x: torch.exp(x * 1e3).mean(), "torch.exp"),
        (
            lambda x: (
                nn.functional.nll_loss(
                    torch.log_softmax(x, 1), torch.tensor([0, 1]), ignore_index=0
                )
                / 0.0
            ),
            "torch.div",
        ),
        (lambda x: (x.view(-1) - 5.0).pow(0.5).sum(), None),  # what was subtracted is in no graph
    ],
)
def test_operators_are_read_back_with_what_they_were_given(make: Any, name: str | None) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 1.0, 2.0]], requires_grad=True)
    nodes = walk(make(x))
    found = first_bad(nodes)
    if name is None:
        assert found is not None
        assert found.name == "torch.pow"  # it saved what it was given
        assert read_back(nodes[0]) is None
    else:
        assert found is not None
        assert found.name == name


class Shared(nn.Module):
    """Sums up its inputs over all ranks, as contrastive losses do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.distributed.all_reduce(x.clone())
        return self.layer(x)


def test_no_other_rank_hears_of_the_repeated_call() -> None:
    """A fork shares its parent's connections."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        model, x = Shared(), torch.full((2, 3), math.inf)
        recorder = recorder_of(model, x)
        model(x)
        assert bad_gradient(recorder, Streams().read(), None, 1.0, LIMIT)[1].startswith(
            "no single operator"
        )
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_operator_of_a_device_is_found_on_the_host() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).cuda()
    model(torch.ones(2, 3, device="cuda")).sum().backward()
    x = torch.full((2, 3), math.inf, device="cuda")
    before = [t.clone() for t in model.state_dict().values()]
    loss = model(x).sum()
    model.load_state_dict(dict(zip(model.state_dict(), before, strict=True)))
    call, why = bad_value(recorder_of(model, x), loss, Streams().read(), None, LIMIT)
    assert call is not None, why
    assert call["function"] == "torch.nn.functional.linear" and call["args"][0].device.type == "cpu"
    assert outcome_of(call)["prints"] == call["prints"]
    assert all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values(), strict=True))
    assert all(p.grad is not None and p.is_cuda for p in model.parameters())
    model(torch.ones(2, 3, device="cuda")).sum().backward()


class LateScalars(ScalarReader):
    """As of a device: numbers are there once they are asked for, and not before."""

    def submit(self, value: Any, deliver: Callable[[float], None]) -> None:
        self.num_submitted += 1
        self._waiting.append((None, value.detach().clone(), deliver))

    def poll(self) -> None:
        self.drain()

    def drain(self) -> None:
        while self._waiting:
            _, value, deliver = self._waiting.popleft()
            deliver(float(value))


def known_late(
    tmp_path: Path,
    model: nn.Module,
    batches: list[torch.Tensor],
    limit_mb: float = 256.0,
    spoiled: int = -1,
) -> Bundle:
    """The first bundle of a training whose losses and gradients are known late, as on a device.
    `spoiled`: a step whose loss is.
    """
    recorder = Recorder(tmp_path / "run", Options(deep_steps=(), deep_every=0))
    recorder.scalars = LateScalars()
    recorder.steps.gradient_norms = lambda optimizer: []  # type: ignore[method-assign]
    freezer = Freezer(
        recorder,
        Settings(limit_mb, root=str(tmp_path), script=__file__, working_folder=str(tmp_path)),
    )
    recorder.capture = freezer
    patches = install_all(recorder)
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step, x in enumerate(batches):
            optimizer.zero_grad()
            (model(x).square().mean() * (math.nan if step == spoiled else 1.0)).backward()
            optimizer.step()
    finally:
        patches.restore()
        recorder.close()
    assert recorder.step == len(batches)
    return read_bundle(freezer.bundles[0])


@pytest.mark.parametrize(("bad", "num_steps"), [(7, 12), (30, 90), (95, 100), (118, 200)])
def test_a_loss_that_is_known_late_is_captured_at_its_step(
    tmp_path: Path, bad: int, num_steps: int
) -> None:
    batches = [torch.full((2, 3), math.nan if step == bad else 1.0) for step in range(num_steps)]
    bundle = known_late(tmp_path, nn.Linear(3, 1), batches)
    assert (bundle.failure.kind, bundle.step) == ("nonfinite loss", bad)
    snapshot = bundle.unpacked("snapshot")
    assert snapshot is not None and snapshot["step"] <= bad
    call = bundle.unpacked("call")
    assert call is not None and call["function"] == "torch.nn.functional.linear", (
        "with the weights of the copy, and what was given then"
    )
    assert torch.isnan(call["args"][0]).all() and torch.equal(
        call["args"][1], snapshot["models"][0]["tensors"]["weight"]
    )


def test_without_room_for_a_copy_of_the_weights_the_bundle_says_so(tmp_path: Path) -> None:
    batches = [torch.full((2, 300), math.nan if step == 7 else 1.0) for step in range(12)]
    bundle = known_late(tmp_path, nn.Linear(300, 300), batches, limit_mb=0.5)
    assert (bundle.failure.kind, bundle.step, bundle.unpacked("snapshot")) == (
        "nonfinite loss",
        7,
        None,
    )
    assert any("no copy of the weights of before was at hand" in note for note in bundle.notes)


class Length(nn.Module):
    """Good values everywhere; at zero the root has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4, bias=False)
        self.register_buffer("calls", torch.zeros(()))
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.drop(torch.ones(9)).mean() + self.layer(x).square().sum(-1).sqrt()


@pytest.mark.parametrize(("bad", "num_steps"), [(7, 12), (79, 100), (80, 100), (118, 200)])
def test_a_gradient_that_is_known_late_is_captured_at_its_step(
    tmp_path: Path, bad: int, num_steps: int
) -> None:
    torch.manual_seed(0)
    batches = [torch.randn(2, 3) if step != bad else torch.zeros(2, 3) for step in range(num_steps)]
    model = Length()
    bundle = known_late(tmp_path, model, batches)
    assert (bundle.failure.kind, bundle.step) == ("nonfinite gradient", bad)
    assert (
        bundle.failure.text
        == f"a gradient is not finite at step {bad}, nor is the loss of the next one (nan)"
    )
    assert bundle.batches()[-1]["step"] == bad and not bundle.notes
    snapshot, call = bundle.unpacked("snapshot"), bundle.unpacked("call")
    assert (
        snapshot is not None
        and snapshot["step"] <= bad
        and torch.isfinite(snapshot["models"][0]["tensors"]["layer.weight"]).all()
    )
    assert call is not None and (call["function"], call["gives"]) == (
        "torch.Tensor.sqrt",
        "gradient",
    )
    assert outcome_of(call)["prints"] == call["prints"]
    assert float(model.calls) == num_steps, "the repeated call was made by a copy"


class Masked(nn.Module):
    """Healthy, with an infinity on the way, as masks have it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = torch.log(torch.tensor([1.0, 1.0, 1.0, 0.0]))
        return torch.softmax(self.layer(x) + seen, -1)


def test_a_loss_that_turned_bad_after_the_model_is_not_blamed_on_a_mask(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Masked()
    batches = [torch.randn(2, 3) for _ in range(12)]
    bundle = known_late(tmp_path, model, batches, spoiled=7)
    assert (bundle.failure.kind, bundle.step, bundle.unpacked("call")) == (
        "nonfinite loss",
        7,
        None,
    )
    assert any("operator at fault was not kept" in note for note in bundle.notes)


def test_asking_for_late_gradients_draws_nothing_from_the_run(tmp_path: Path) -> None:
    """Random numbers of the training are the same whether a failure was looked into or not."""
    torch.manual_seed(0)
    batches = [torch.randn(2, 3) if step != 7 else torch.zeros(2, 3) for step in range(12)]
    drawn = []
    for folder in ("watched", "bare"):
        torch.manual_seed(1)
        model = Length()
        if folder == "watched":
            known_late(tmp_path, model, batches)
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for x in batches:
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        drawn.append(torch.random.get_rng_state())
    assert torch.equal(*drawn)
