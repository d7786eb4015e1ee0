"""The callbacks, each in a real training by its framework."""

from __future__ import annotations

import csv
import json
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


def test_lightning_logs_at_its_own_steps_and_nothing_twice(tmp_path: Path) -> None:
    """A value stays with the trainer until a newer one comes: validation is every second epoch, and
    in the others its old score is not logged again.
    """
    pytest.importorskip("lightning")
    import lightning as L
    from torch.utils.data import DataLoader

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            loss: torch.Tensor = self.net(**batch)["loss"]
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", self.net(**batch)["loss"])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    callback = _callback("lightning", tmp_path / "own")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = L.Trainer(
            max_epochs=4,
            check_val_every_n_epoch=2,
            log_every_n_steps=3,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            callbacks=[callback],
        )
        trainer.fit(
            Module(), DataLoader(_rows(), batch_size=8), DataLoader(_rows(16), batch_size=8)
        )
    run = callback.run
    assert run is not None

    def steps(name: str) -> list[int]:
        return [row.step for row in run.logged if name in row.metrics]

    assert steps("val_loss") == [16, 32]
    assert steps("train_loss_epoch") == [8, 16, 24, 32]
    every = steps("train_loss_step")
    assert len(every) == len(set(every)) and set(range(3, 31, 3)) <= set(every)
    for row in run.logged:
        if "train_loss_step" in row.metrics:
            assert row.metrics["train_loss_step"] == pytest.approx(run.losses[row.step - 1])


def test_what_a_trainer_logs_is_drawn_and_exported(
    trained: tuple[str, Run, Run], tmp_path: Path
) -> None:
    from sawbones.diagnosis import diagnose_run
    from sawbones.integrations.exports import export, rows
    from sawbones.page.view import view
    from sawbones.report.html import write_html

    name, own, _ = trained
    metric = {"transformers": "loss", "lightning": "train_loss", "accelerate": "train/loss"}[name]
    last = next(row for row in reversed(own.logged) if metric in row.metrics)
    report = diagnose_run(own).report

    with export(own, report, "csv", tmp_path / "run.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    cells = [row[f"logged/{metric}"] for row in table]
    assert [float(cell) for cell in cells if cell][-1] == last.metrics[metric]
    assert table[-1][f"logged/{metric}"] == str(last.metrics[metric])
    assert {"loss", "logged/step"} <= set(table[0]), "what was measured keeps its name"
    merged = list(rows(own))
    assert [step for step, _ in merged] == sorted(step for step, _ in merged)
    assert (last.step, last.metrics[metric]) in [
        (step, values[f"logged/{metric}"])
        for step, values in merged
        if f"logged/{metric}" in values
    ]
    timeline = json.loads(
        export(own, report, "perfetto", tmp_path / "run.json").read_text(encoding="utf-8")
    )
    assert {"loss", f"logged/{metric}"} <= {event["name"] for event in timeline["traceEvents"]}

    if name == "lightning":  # one value of the whole epoch is no curve
        return
    found, _ = view(own.folder)
    (block,) = found["logged"]
    drawn = {one["name"]: one["figure"]["lines"][0] for one in block["figures"]}
    steps = [row.step for row in own.logged if metric in row.metrics]
    assert drawn[metric]["x"] == steps and own.framework.name in block["title"]
    write_html(report, own, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"<h3>{metric}</h3>" in page and 'data-figure="logged-0"' in page


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


def test_logged_numbers_are_there_while_the_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "from sawbones.integrations.recording import Recording\n"
        "from sawbones.observe.launch import current_recorder\n"
        "recording = Recording('transformers.Trainer', 'own', False)\n"
        "recording.begin()\n"
        "layer = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)\n"
        "for step in range(1, 31):\n"
        "    layer(torch.ones(4, 2)).sum().backward()\n"
        "    optimizer.step()\n"
        "    recording.log({'loss': 1 / step, 'note': 'a text'}, step)\n"
        "recording._recorder.writer.flush()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    logged = read_run(tmp_path / "own").logged
    assert [row.step for row in logged] == list(range(1, 31))
    assert [row.metrics for row in logged[-1:]] == [{"loss": 1 / 30}]


@pytest.mark.parametrize("summary", [True, False])
def test_what_is_found_meanwhile_is_said_once_or_not_at_all(summary: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "from sawbones.integrations.recording import Recording\n"
        f"recording = Recording('accelerate.Accelerator', 'own', {summary})\n"
        "recording.begin()\n"
        "torch.manual_seed(0)\n"
        "layer = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)\n"
        "for step in range(30):\n"
        "    layer(torch.randn(16, 4)).square().mean().backward()\n"
        "    optimizer.step()\n"
        "recording.end()\n"
    )
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True)
    said = [line for line in done.stderr.decode().splitlines() if "loop.no-zero-grad" in line]
    live = [line for line in said if line.startswith("sawbones: step")]
    assert (len(live), len(said)) == ((1, 2) if summary else (0, 0)), done.stderr.decode()


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
