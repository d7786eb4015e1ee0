"""What a process did before it is watched does not show in the recording, and nothing of a watch
stays in the process once it is over.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing.process
import os
import random
import signal
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks
from torch.overrides import _get_current_function_mode_stack
from torch.utils.data import DataLoader, TensorDataset

import sawbones
from sawbones.observe.deep import DeepObserver
from sawbones.observe.interrupts import HOLDING, Held
from sawbones.observe.options import diagnosing, running
from sawbones.schema import Run
from sawbones.store import read_run, to_plain

Train = Callable[[], None]


@pytest.fixture(scope="module", autouse=True)
def torch_has_loaded_what_it_loads_late() -> None:
    """An optimizer brings in the compiler, and that a filter of warnings and much more."""
    _with_an_optimizer()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))


def _data() -> TensorDataset:
    stream = torch.Generator().manual_seed(3)
    x = torch.randn(96, 6, generator=stream)
    return TensorDataset(x, x[:, :3].argmax(1))


def _with_an_optimizer() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4)
    criterion = nn.CrossEntropyLoss()
    for _ in range(2):
        for x, y in DataLoader(_data(), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(_data(), 32))
        model.train()
        assert right >= 0


def _bare() -> None:
    x, y = _data().tensors
    first = (0.5 * torch.randn(6, 8)).requires_grad_()
    second = (0.5 * torch.randn(8, 3)).requires_grad_()
    for step in range(8):
        rows = slice(12 * step, 12 * step + 12)
        F.cross_entropy(torch.tanh(x[rows] @ first) @ second, y[rows]).backward()
        with torch.no_grad():
            for p in (first, second):
                p -= 0.1 * p.grad
                p.grad = None


def _module_by_hand() -> None:
    x, y = _data().tensors
    model = nn.Linear(6, 3)
    moments = [torch.zeros_like(p) for p in model.parameters()]
    for step in range(8):
        rows = slice(12 * step, 12 * step + 12)
        model.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        for p, m in zip(model.parameters(), moments, strict=True):
            m.mul_(0.9).add_(p.grad)
            p.data -= 0.05 * m


STYLES = {"optimizer": _with_an_optimizer, "bare": _bare, "module by hand": _module_by_hand}
OPTIONS = {"diagnosing": diagnosing(quiet=True), "running": running()}
# clocks and what is read off them, and what names the place
MEASURED = {
    "cpu_time",
    "data_wait_ms",
    "folder",
    "memory_mb",
    "own_ms",
    "seconds",
    "standing",
    "step_ms",
    "time",
    "wait_ms",
    "watch_ms",
}


def _recorded(train: Train, folder: Path, options: str) -> dict[str, Any]:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    with sawbones.watch(out=folder, options=OPTIONS[options], quiet=True) as watching:
        train()
    return _comparable(watching.close())


def _comparable(run: Run) -> dict[str, Any]:
    return {f.name: _timeless(to_plain(getattr(run, f.name))) for f in fields(run)} | {
        "cpu_time": None,
        "folder": None,
        "own_ms": None,
        "seconds": None,
        "standing": None,
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in MEASURED}
    if isinstance(value, (list, tuple)):
        return [_timeless(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


class _Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) < 16:
            raise ZeroDivisionError
        return self.layer(x)


def _dies_in_the_forward() -> None:
    model = _Fails()
    for rows in (32, 32, 8):
        model(torch.randn(rows, 6)).sum().backward()


class _Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt


def _dies_in_the_backward() -> None:
    model = nn.Linear(6, 3)
    _Refuses.apply(model(torch.randn(4, 6))).sum().backward()


def _counted(function: Any) -> Any:
    return lambda *args, **settings: function(*args, **settings)


def _another_life(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much that can happen between two recordings."""
    torch.compile(lambda x: torch.sin(x) * 2, backend="eager")(torch.ones(3))
    for number, (train, error) in enumerate(
        ((_dies_in_the_forward, ZeroDivisionError), (_dies_in_the_backward, KeyboardInterrupt))
    ):
        with pytest.raises(error):
            _recorded(train, folder / str(number), "diagnosing")
    first = sawbones.watch(out=folder / "a", options=diagnosing(), quiet=True)
    second = sawbones.watch(out=folder / "b", options=diagnosing(), quiet=True)
    _module_by_hand()
    first.close()
    second.close()
    with monkeypatch.context() as patching:
        third = sawbones.watch(out=folder / "c", options=diagnosing(), quiet=True)
        patching.setattr(F, "cross_entropy", _counted(F.cross_entropy))
        _bare()
        third.close()
    # files of others, which stand before this one in the alphabet
    other = folder / "aaa.py"
    other.write_text("".join(f"n{i} = sorted([{i}.5])\n" for i in range(1000)))
    module = types.ModuleType("aaa_of_others")
    module.__file__ = str(other)
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("style", STYLES)
def test_a_recording_does_not_depend_on_what_was_recorded_before(
    style: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _recorded(STYLES[style], tmp_path / "before", options)
    again = _recorded(STYLES[style], tmp_path / "again", options)
    _another_life(tmp_path, monkeypatch)
    after = _recorded(STYLES[style], tmp_path / "after", options)
    # bare parameters are only looked into where the operators are heard
    assert before["events"] and (before["deep"] or (style, options) == ("bare", "running"))
    assert all(deep["losses"] for deep in before["deep"])
    for name, value in before.items():
        assert again[name] == value, name
        assert after[name] == value, name


def test_source_lines_are_those_of_the_files_that_run_and_what_they_import(tmp_path: Path) -> None:
    _recorded(_bare, tmp_path / "run", "diagnosing")
    run = read_run(tmp_path / "run")
    files = {Path(row.site.file).name for row in run.source_numbers}
    assert files == {"test_one_after_another.py"}
    assert 0.1 in {number.value for number in run.source_numbers}


# what stays


_FUNCTIONS = (types.FunctionType, classmethod, staticmethod)


def _wrapped() -> Iterator[str]:
    names = (
        "torch",
        "numpy.random",
        "random",
        "builtins",
        "logging",
        "warnings",
        "multiprocessing",
    )
    for name, module in list(sys.modules.items()):
        if not name.startswith(names):
            continue
        for key, value in list(vars(module).items()):
            for owner, inner in [(key, value), *_members(key, value)]:
                if type(inner) in _FUNCTIONS and "__sawbones__" in vars(inner):
                    yield f"{name}.{owner}"


def _members(name: str, value: Any) -> list[tuple[str, Any]]:
    members = vars(value).items() if issubclass(type(value), type) else ()
    return [(f"{name}.{key}", member) for key, member in members]


def _state() -> dict[str, Any]:
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    callbacks = sys.modules.get("torch._dynamo.callback")
    return {
        "wrapped": sorted(set(_wrapped())),
        "modes": list(_get_current_function_mode_stack()),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "torch functions": torch._C._is_torch_function_enabled(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "module hooks": {
            name: len(value)
            for name, value in vars(module_hooks).items()
            if name.startswith("_global_") and isinstance(value, dict)
        },
        "optimizer hooks": (
            len(optimizer_hooks._global_optimizer_pre_hooks),
            len(optimizer_hooks._global_optimizer_post_hooks),
        ),
        "signals": [n for n in signal.valid_signals() if isinstance(signal.getsignal(n), Held)],
        "setting signals": (sys.modules["_signal"].signal, sys.modules["_signal"].getsignal),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        "imports": [type(finder) for finder in sys.meta_path],
        "warnings": (list(warnings.filters), warnings.showwarning),
        "threads": sorted(t.name for t in threading.enumerate()),
        "open files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
        "collector": list(gc.callbacks),
        "stance": getattr(getattr(compiler, "_stance", None), "stance", "default"),
        "told of compilations": len(callbacks.callback_handler.start_callbacks) if callbacks else 0,
        "busy": (DeepObserver.busy, HOLDING.depth),
        "printing": (print, logging.Logger.handle, multiprocessing.process.BaseProcess.start),
    }


ENDINGS: dict[str, tuple[Train, type[BaseException] | None]] = {
    **{name: (train, None) for name, train in STYLES.items()},
    "dies in the forward": (_dies_in_the_forward, ZeroDivisionError),
    "dies in the backward": (_dies_in_the_backward, KeyboardInterrupt),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_of_a_watch_stays_in_the_process(ending: str, options: str, tmp_path: Path) -> None:
    train, error = ENDINGS[ending]
    before = _state()
    if error is None:
        _recorded(train, tmp_path / "run", options)
    else:
        with pytest.raises(error):
            _recorded(train, tmp_path / "run", options)
    for name, value in _state().items():
        assert value == before[name], name


def test_watches_that_overlap_leave_nothing_in_whatever_order_they_end(tmp_path: Path) -> None:
    before = _state()
    first, second = (
        sawbones.watch(out=tmp_path / name, options=diagnosing(), quiet=True) for name in "ab"
    )
    _with_an_optimizer()
    first.close()
    _with_an_optimizer()
    assert [second.close().num_steps, first.close().num_steps] == [24, 12]
    for name, value in _state().items():
        assert value == before[name], name


def test_a_wrapper_that_was_covered_by_another_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = F.cross_entropy
    watching = sawbones.watch(out=tmp_path / "a", quiet=True)
    monkeypatch.setattr(F, "cross_entropy", _counted(F.cross_entropy))
    watching.close()
    monkeypatch.undo()
    sawbones.watch(out=tmp_path / "b", quiet=True).close()
    assert F.cross_entropy is before


def test_a_recording_that_is_over_is_not_kept_in_memory(tmp_path: Path) -> None:
    def watched() -> weakref.ref[Any]:
        watching = sawbones.watch(out=tmp_path / "run", options=diagnosing(), quiet=True)
        _with_an_optimizer()
        _bare()
        watching.close()
        return weakref.ref(watching.recorder)

    recorder = watched()
    gc.collect()
    assert recorder() is None


def test_a_stance_of_the_compiler_comes_back(tmp_path: Path) -> None:
    with torch.compiler.set_stance("eager_on_recompile"):
        with sawbones.watch(out=tmp_path / "run", options=diagnosing(), quiet=True):
            torch.compile(nn.Linear(2, 2), backend="eager")
            assert sys.modules["torch._dynamo.eval_frame"]._stance.stance == "force_eager"
        assert sys.modules["torch._dynamo.eval_frame"]._stance.stance == "eager_on_recompile"


@pytest.mark.filterwarnings("ignore:Using `torch.compile")
def test_what_was_compiled_before_is_not_compiled_again_for_a_deep_step(tmp_path: Path) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model = nn.Linear(6, 3)
    scores = torch.compile(lambda x: torch.sin(model(x)), backend=backend)
    x, y = _data().tensors

    def train() -> list[float]:
        losses = []
        nn.init.constant_(model.weight, 0.1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(scores(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    with torch.no_grad():
        model.bias.zero_()
    bare = train()
    with torch.no_grad():
        model.bias.zero_()
    with sawbones.watch(model, out=tmp_path / "run", quiet=True):
        assert train() == bare
    assert len(graphs) == 1
    assert all(not deep.ops for deep in read_run(tmp_path / "run").deep)
