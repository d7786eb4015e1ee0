"""Brief steps: the same rows as ordinary ones give, and the ordinary way back at whatever is out of
the ordinary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.observe.hooks import install_all
from sawbones.observe.options import Options
from sawbones.observe.recorder import Recorder
from sawbones.schema import Run
from sawbones.store import read_run

SHALLOW = Options(deep_steps=(), deep_every=0)
FULL = 4  # steps in full, before brief ones may begin

Loop = Callable[[Recorder], None]


@contextmanager
def recorded(folder: Path, brief: bool) -> Iterator[tuple[Recorder, list[int]]]:
    """With the list of the steps that ended briefly."""
    recorder = Recorder(folder, SHALLOW)
    recorder.detail.in_full = FULL if brief else 10_000
    recorder.detail.stepped = lambda *_: False  # type: ignore[method-assign]  # a clock must not decide here
    recorder.batches.sample_from_here()
    ended: list[int] = []
    ends = recorder.brief.step_ends

    def step_ends() -> bool:
        ended.append(recorder.step)
        return ends()

    recorder.brief.step_ends = step_ends  # type: ignore[method-assign]
    patches = install_all(recorder)
    try:
        yield recorder, ended
    finally:
        patches.restore()
        recorder.close()


def run(folder: Path, loop: Loop, brief: bool = True) -> tuple[Run, list[int]]:
    torch.manual_seed(0)
    with recorded(folder, brief) as (recorder, ended):
        loop(recorder)
    return read_run(folder), ended


def small(width: int = 16) -> nn.Module:
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))


def loader(num: int = 160) -> DataLoader[Any]:
    return DataLoader(
        TensorDataset(torch.randn(num, 8), torch.randint(0, 3, (num,))), batch_size=8, shuffle=True
    )


def with_loader(_: Recorder, epochs: int = 3, clear: bool = True, every: int = 1) -> None:
    model, loss_of = small(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = loader()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)
    for _ in range(epochs):
        for i, (x, y) in enumerate(batches):
            loss_of(model(x), y).backward()
            if (i + 1) % every == 0:
                optimizer.step()
                schedule.step()
                if clear:
                    optimizer.zero_grad()


def by_hand(_: Recorder, steps: int = 50) -> None:
    model = small(width=3000)  # too large for the path of tiny tensors
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 1e-3}], lr=1e-2
    )
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    for i in range(steps):
        chosen = torch.arange(i % 8, 64, 8)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@pytest.mark.parametrize(
    "loop",
    [with_loader, by_hand, lambda r: with_loader(r, every=4)],
    ids=["loader", "by hand", "accumulation"],
)
def test_rows_are_those_of_ordinary_steps(tmp_path: Path, loop: Loop) -> None:
    usual, none = run(tmp_path / "usual", loop, brief=False)
    short, many = run(tmp_path / "short", loop)
    assert not none and len(many) > usual.num_steps / 2
    for name in ("step", "optimizer", "loss", "grad_norm", "lr", "skipped", "microsteps", "deep"):
        np.testing.assert_allclose(short.steps[name], usual.steps[name], rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(short.tensor_steps, usual.tensor_steps)
    for name, columns in usual.statistics.items():
        np.testing.assert_allclose(short.statistics[name], columns, rtol=1e-6, err_msg=name)
    assert (
        np.all(short.steps["step_ms"] > 0)
        and np.all(np.diff(short.steps["time"]) > 0)
        and np.all(short.steps["memory_mb"] > 0)
    )


def test_samples_of_events_and_batches_are_not_lost(tmp_path: Path) -> None:
    short, many = run(tmp_path / "run", lambda r: with_loader(r, epochs=6))
    assert not {25, 50, 75, 100} & set(many)
    kinds = [{e.kind for e in short.events if e.step == step} for step in (25, 50, 75)]
    assert all(
        {"batch", "forward", "loss", "backward", "step", "zero_grad"} <= found for found in kinds
    )
    assert [b.step for b in short.batches] == [0, 50, 100]


@pytest.mark.parametrize("clear", [True, False])
def test_what_was_not_cleared_is_seen_in_the_step_that_is_kept(tmp_path: Path, clear: bool) -> None:
    short, _ = run(tmp_path / "run", lambda r: with_loader(r, clear=clear))
    kept = {e.step: e.data["uncleared"] for e in short.of_kind("step")}
    assert set(kept) == {0, 1, 2, 3, 25, 50}
    assert all((kept[step] == 0) == clear for step in (25, 50))


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_is_born_in_its_step(tmp_path: Path, where: str) -> None:
    def loop(_: Recorder) -> None:
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        for step in range(30):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8)).square().mean()
            if step == 17 and where == "loss":
                loss = loss * math.nan
            elif step == 17:
                one = model[0].weight[0, 0]
                loss = loss + (one - one.detach()).abs().sqrt()
            loss.backward()
            optimizer.step()

    short, many = run(tmp_path / "run", loop)
    assert 16 in many and 17 not in many
    first = int(np.flatnonzero(~np.isfinite(short.steps["grad_norm"]))[0])
    assert first == 17 and np.isfinite(short.steps["loss"][17]) == (where == "gradient")
    row = list(short.tensor_steps).index(17)
    assert short.statistics["grad_nonfinite"][row].max() > 0, "a full look, at once"


def test_evaluations_in_between_are_seen(tmp_path: Path) -> None:
    def loop(_: Recorder) -> None:
        model, train, held = small(), loader(), loader(40)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        for _ in range(3):
            model.train()
            for x, y in train:
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, y in held:
                    functional.cross_entropy(model(x), y)

    short, many = run(tmp_path / "run", loop)
    assert len(many) > 40
    looked = [(e.kind, e.step) for e in short.events if e.phase == "eval"]
    assert all(
        looked.count((kind, step)) == 5 for kind in ("forward", "loss") for step in (20, 40, 60)
    )
    assert short.num_steps == 60 and list(short.steps["step"]) == list(range(60))


def two_optimizers(_: Recorder) -> None:
    model = small()
    pair = [torch.optim.SGD(part.parameters(), lr=1e-2) for part in (model[0], model[2])]
    for _ in range(20):
        model(torch.randn(4, 8)).square().mean().backward()
        for optimizer in pair:
            optimizer.step()
            optimizer.zero_grad()


def closures(_: Recorder) -> None:
    model = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        return loss

    for _ in range(20):
        optimizer.step(closure)


def frozen(_: Recorder) -> None:
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    model[0].requires_grad_(False)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("loop", [two_optimizers, closures, frozen])
def test_other_loops_go_the_ordinary_way(tmp_path: Path, loop: Loop) -> None:
    usual, _ = run(tmp_path / "usual", loop, brief=False)
    short, many = run(tmp_path / "short", loop)
    assert not many
    np.testing.assert_array_equal(short.steps["loss"], usual.steps["loss"])
    np.testing.assert_array_equal(short.steps["grad_norm"], usual.steps["grad_norm"])


def test_an_optimizer_that_steps_by_another_one_is_one_step(tmp_path: Path) -> None:
    class Outer(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            params = list(params)
            super().__init__(params, {"lr": 0.1})
            self.inner = torch.optim.SGD(params, lr=0.1)
            self.calls = 0

        def step(self, closure: Any = None) -> None:
            self.calls += 1
            if self.calls > 10:  # as one that looks ahead does, later on
                self.inner.step()

    def loop(_: Recorder) -> None:
        model = small()
        outer = Outer(model.parameters())
        for _ in range(18):
            outer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            outer.step()

    short, many = run(tmp_path / "run", loop)
    assert many == list(range(FULL, 11)), "the first that is more than one step ends it"
    assert short.num_steps == 18


class Checked(torch.optim.SGD):
    """As many subclasses do, it looks at its gradients and leaves the rest to its parent."""

    fails = False

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        if self.fails:
            raise ArithmeticError
        return super().step(closure)


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize("fails_at", [-1, 9])
def test_a_subclass_that_calls_its_parent_makes_one_step_of_it(
    tmp_path: Path, brief: bool, fails_at: int
) -> None:
    def loop(_: Recorder) -> None:
        model = small()
        torch.optim.SGD(
            model.parameters(), lr=0.1
        )  # from the first of its instances on, torch tells of the parent's steps too
        optimizer = Checked(model.parameters(), lr=0.1)
        for step in range(16):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.fails = step == fails_at
            try:
                optimizer.step()
            except ArithmeticError:
                pass

    short, _ = run(tmp_path / "run", loop, brief)
    assert list(short.steps["step"]) == list(range(15 if fails_at > 0 else 16))


def test_a_brief_step_that_raises_and_is_caught_is_no_step(tmp_path: Path) -> None:
    def loop(_: Recorder) -> None:
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(16):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.param_groups[0]["lr"] = "high" if step == 9 else 0.1
            try:
                optimizer.step()
            except TypeError:
                pass

    short, many = run(tmp_path / "run", loop)
    assert len(many) > 8
    assert list(short.steps["step"]) == list(range(15))


def test_an_error_of_ours_does_not_reach_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SAWBONES_RAISE", raising=False)
    done = []

    def loop(recorder: Recorder) -> None:
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(30):
            if step == 12:
                monkeypatch.setattr(recorder.steps, "has_loss", None)
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            done.append(step)

    short, many = run(tmp_path / "run", loop)
    assert done == list(range(30)) and short.num_steps == 30
    assert max(many) == 11 and "brief steps failed at step 12" in capsys.readouterr().err
