"""The callbacks, each in a real training by its framework."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sawbones
from sawbones.schema import Run
from sawbones.store import read_run

STEPS = 8


def _rows(count: int = 64) -> list[dict[str, torch.Tensor]]:
    drawn = torch.randn(count, 6, generator=torch.Generator().manual_seed(0))
    return [{"x": row, "labels": row[:3].argmax()} for row in drawn]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def _with_transformers(folder: Path, callbacks: list[Any]) -> None:
    from transformers import Trainer, TrainingArguments

    args = TrainingArguments(
        output_dir=str(folder / "out"),
        max_steps=STEPS,
        per_device_train_batch_size=8,
        logging_steps=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        seed=0,
    )
    torch.manual_seed(0)
    Trainer(Net(), args, train_dataset=_rows(), callbacks=callbacks).train()


def _with_lightning(folder: Path, callbacks: list[Any]) -> None:
    import lightning as L
    from torch.utils.data import DataLoader

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            loss: torch.Tensor = self.net(**batch)["loss"]
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    torch.manual_seed(0)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=callbacks,
    )
    trainer.fit(Module(), DataLoader(_rows(), batch_size=8))


def _with_accelerate(folder: Path, callbacks: list[Any]) -> None:
    from accelerate import Accelerator
    from torch.utils.data import DataLoader

    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, log_with=callbacks or None)
    model, optimizer, loader = accelerator.prepare(
        *(net := Net(), torch.optim.Adam(net.parameters(), lr=1e-2)),
        DataLoader(_rows(), batch_size=8),
    )
    accelerator.init_trackers("project")
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = model(**batch)["loss"]
        accelerator.backward(loss)
        optimizer.step()
        accelerator.log({"train/loss": loss}, step=step)
    accelerator.end_training()


def _callback(name: str, out: Path, summary: bool = False) -> Any:
    import importlib

    module = importlib.import_module(f"sawbones.integrations.{name}")
    made = module.SawbonesTracker if name == "accelerate" else module.SawbonesCallback
    return made(out=out, summary=summary)


TRAININGS: dict[str, Callable[[Path, list[Any]], None]] = {
    "transformers": _with_transformers,
    "lightning": _with_lightning,
    "accelerate": _with_accelerate,
}


@pytest.fixture(scope="module", params=TRAININGS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(name, what the callback recorded, what a watch around the same training recorded)"""
    pytest.importorskip(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    callback = _callback(request.param, folder / "own")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TRAININGS[request.param](folder, [callback])
        with sawbones.watch(out=folder / "around"):
            TRAININGS[request.param](folder, [])
    return request.param, callback.run, sawbones.read_run(folder / "around")


def test_a_callback_records_the_run_that_watching_records(trained: tuple[str, Run, Run]) -> None:
    _, own, around = trained
    assert own.num_steps == around.num_steps == STEPS
    assert own.losses.tolist() == around.losses.tolist()
    assert own.ending.kind == "finished"
    kinds = [{e.kind for e in run.events} for run in (own, around)]
    assert {"backward", "step"} <= kinds[0] and kinds[0] <= kinds[1]
    assert [t.name for t in own.tensors] == [t.name for t in around.tensors]


def test_logged_numbers_carry_the_frameworks_names_and_steps(
    trained: tuple[str, Run, Run],
) -> None:
    name, own, _ = trained
    rows = own.logged
    metric = {"transformers": "loss", "lightning": "train_loss", "accelerate": "train/loss"}[name]
    found = [row for row in rows if metric in row.metrics]
    steps = {"transformers": [2, 4, 6, 8], "lightning": [8], "accelerate": list(range(8))}[name]
    assert [row.step for row in found] == steps
    assert own.framework.name.startswith(name) and own.framework.version
    last = found[-1].metrics[metric]
    near = own.losses[-2:].mean() if name == "transformers" else own.losses[-1]
    assert last == pytest.approx(near, rel=1e-3)


def test_an_exception_ends_the_recording_of_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    import lightning as L

    class Failing(L.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, *args: Any) -> None:
            raise RuntimeError("the disk is full")

    callback = _callback("lightning", tmp_path / "own")
    with warnings.catch_warnings(), pytest.raises(RuntimeError):
        warnings.simplefilter("ignore")
        _with_lightning(tmp_path, [callback, Failing()])
    assert callback.run is not None and callback.run.ending.message == "the disk is full"


def test_where_the_run_is_recorded_already_only_the_numbers_go_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("accelerate")
    with sawbones.watch(out=tmp_path / "around"):
        tracker = _callback("accelerate", tmp_path / "own", summary=True)
        _with_accelerate(tmp_path, [tracker])
    assert tracker.run is None and not (tmp_path / "own").exists()
    assert len(sawbones.read_run(tmp_path / "around").logged) == STEPS
    _with_accelerate(tmp_path, [tracker])
    said = capsys.readouterr().err
    # Before 1.8 a tracker that is used once more learns of the training when it logs its first step.
    assert "8 steps" in said or "7 steps" in said, "a summary of its own run"


def test_what_a_trainer_does_not_pass_on_ends_the_recording_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "from sawbones.integrations.recording import Recording\n"
        "Recording('transformers.Trainer', 'own', False).begin()\n"
        "layer = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)\n"
        "layer(torch.ones(4, 2)).sum().backward()\n"
        "optimizer.step()\n"
        "raise ValueError('row 7 is empty')\n"
    )
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1
    ending = read_run(tmp_path / "own").ending
    assert (ending.kind, ending.exception) == ("exception", "ValueError")
    assert ending.message == "row 7 is empty"
