"""sawbones.watch: the same recording inside a notebook or a loop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from processes import Bench
from torch import nn
from torch.nn import functional as F

import sawbones
from sawbones.observe.options import Options
from sawbones.store import read_run

ORIGINALS = {
    (nn.Module, "__call__"),
    (nn.Module, "__init__"),
    (nn.Module, "train"),
    (torch.autograd, "backward"),
    (torch, "save"),
    (torch.optim.Optimizer, "zero_grad"),
    (F, "cross_entropy"),
    (torch, "load"),
    (nn.utils, "clip_grad_norm_"),
    (torch.utils.data.DataLoader, "__iter__"),
    (torch.amp.GradScaler, "step"),
}


def optimizer_hooks() -> dict[int, object]:
    return sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks


def train(
    steps: int, model: nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None
) -> list[float]:
    torch.manual_seed(0)
    model = model or nn.Linear(4, 2)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 2)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_with_block_records_and_puts_everything_back(tmp_path: Path) -> None:
    before = {(owner, name): vars(owner)[name] for owner, name in ORIGINALS}
    hooks = len(optimizer_hooks())
    bare = train(5)
    with sawbones.watch(out=tmp_path / "run") as watching:
        assert any(vars(owner)[name] is not original for (owner, name), original in before.items())
        seen = train(5)
        assert watching.step == 5
    assert seen == bare
    assert all(vars(owner)[name] is original for (owner, name), original in before.items())
    assert len(optimizer_hooks()) == hooks
    train(3)
    run = read_run(tmp_path / "run")
    assert (
        run.ending.kind == "finished" and run.num_steps == 5 and run.steps["loss"].tolist() == bare
    )
    assert [d.step for d in run.deep] == [0, 3]


def test_models_and_optimizers_from_before_are_known_by_name(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train(2, model, optimizer)
    watching = sawbones.watch(
        model, optimizer, out=tmp_path / "run", options=Options(deep_steps=(), deep_every=0)
    )
    train(3, model, optimizer)
    run = watching.close()
    assert [t.name for t in run.tensors] == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
    ] and run.optimizers[0].cls == "AdamW"
    assert watching.close().num_steps == run.num_steps == 3


def test_one_watch_after_the_other(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with sawbones.watch(out=tmp_path / name, options=Options(deep_steps=(), deep_every=0)):
            train(3)
    assert [read_run(tmp_path / name).num_steps for name in ("first", "second")] == [3, 3]


def test_an_exception_in_the_block_is_the_ending_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), sawbones.watch(out=tmp_path / "run"):
        train(2)
        print(1 / 0)
    ending = read_run(tmp_path / "run").ending
    assert (ending.kind, ending.exception) == ("exception", "ZeroDivisionError")


def test_something_else_than_a_model_is_refused_and_nothing_stays_patched(tmp_path: Path) -> None:
    call = vars(nn.Module)["__call__"]
    with pytest.raises(TypeError, match="takes models and optimizers, not int"):
        sawbones.watch(3, out=tmp_path / "run")  # type: ignore[arg-type]
    assert vars(nn.Module)["__call__"] is call


def test_notebook_cells_are_the_users_code(bench: Bench) -> None:
    """Cells are compiled under names like <ipython-input-1-...>; a folder is chosen when none is
    given.
    """
    cell = (
        "import torch\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "w = sawbones.watch(model)\nfor _ in range(3):\n    optimizer.zero_grad()\n    model(torch.ones(1, 2)).sum().backward()\n"
        "    optimizer.step()\nrun = w.close()\nprint(run.num_steps, run.of_kind('step')[0].site, w.folder.parent.name)\n"
    )
    outcome = bench.bare(
        f"import sawbones\nexec(compile({cell!r}, '<ipython-input-1-abc>', 'exec'))\n"
    )
    assert outcome.status == 0, outcome.stderr
    steps, site, *_, parent = outcome.stdout.split()
    assert steps == "3" and site.startswith("<ipython-input-1-abc>:8") and parent == ".sawbones"


def test_a_with_block_ends_with_a_summary_and_what_to_do_next(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = Options(deep_steps=(), deep_every=0)
    with sawbones.watch(out=tmp_path / "run", options=options) as watching:
        train(3)
    told = capfd.readouterr().err
    assert "3 steps in" in told and f"sawbones diagnose {tmp_path / 'run'}" in told
    assert len(repr(watching.close())) < 200
    with sawbones.watch(out=tmp_path / "quiet", options=options, quiet=True):
        train(3)
    assert capfd.readouterr().err == ""
