"""Under a trainer the places shown first are the user's own: the collate function, the Dataset, the
line that initialises; the call that runs the trainer comes last.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
        {initialised}

    def forward(self, x, labels):
        logits = self.layers(x)
        return {{"loss": F.cross_entropy(logits, labels), "logits": logits}}


class Rows(Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 6)
        self.labels = self.x[:, :3].argmax(1)
        {broken}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {{"x": self.x[i], "labels": self.labels[i]}}


def collate(samples):
    return {{name: torch.stack([s[name] for s in samples]) for name in samples[0]}}


torch.manual_seed(0)
"""
TRAINERS = {
    "transformers": """
from transformers import Trainer, TrainingArguments
args = TrainingArguments(
    output_dir="out",
    max_steps={steps},
    per_device_train_batch_size=16,
    learning_rate={rate},
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    save_strategy="no",
    seed=3,
)
Trainer(Net(), args, train_dataset=Rows(256), data_collator=collate).train()  # the call
""",
    "lightning": """
import lightning as L


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, index):
        return {loss}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr={rate})


loader = DataLoader(Rows(256), 16, shuffle=True, collate_fn=collate)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer = L.Trainer(max_steps={steps}, accelerator="cpu", enable_model_summary=False, **quiet)
trainer.fit(Module(), loader)  # the call
""",
}

HEALTHY = {
    "initialised": "pass",
    "broken": "pass",
    "rate": "1e-3",
    "steps": "40",
    "loss": 'self.net(**batch)["loss"]',
}


def _diagnosed(folder: Path, trainer: str, **parts: str) -> tuple[list[str], dict[str, Any]]:
    """(the text of the script, the finding)"""
    pytest.importorskip(trainer)
    text = (HEAD + TRAINERS[trainer]).format(**{**HEALTHY, **parts})
    (folder / "train.py").write_text(text)
    command = [sys.executable, "-m", "sawbones", "diagnose", "--no-experiments", "--quiet"]
    subprocess.run([*command, "--json", "r.json", "train.py"], cwd=folder, capture_output=True)
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert report["findings"], report["verdict"]
    return text.splitlines(), report["findings"][0]


def _written(lines: list[str], finding: dict[str, Any]) -> list[str]:
    assert {place["file"] for place in finding["where"]} == {"train.py"}
    return [lines[place["line"] - 1].strip() for place in finding["where"]]


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_row_that_is_not_finite_is_shown_in_the_users_data(trainer: str, tmp_path: Path) -> None:
    lines, finding = _diagnosed(tmp_path, trainer, broken='self.x[137, 2] = float("nan")')
    assert finding["fault"] == "data.nonfinite-input"
    places = _written(lines, finding)
    assert "# the call" not in places[0]
    assert all("# the call" not in place for place in places[:-1]), places


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_bad_start_is_shown_where_the_module_is_initialised(trainer: str, tmp_path: Path) -> None:
    start = "nn.init.normal_(self.layers[2].weight, std=60.0)"
    lines, finding = _diagnosed(tmp_path, trainer, initialised=start)
    assert finding["fault"] == "model.bad-init"
    assert _written(lines, finding)[0] == start


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_label_without_a_class_names_its_row_and_the_users_lines(
    trainer: str, tmp_path: Path
) -> None:
    lines, finding = _diagnosed(tmp_path, trainer, broken="self.labels[137] = 3")
    assert finding["fault"] == "data.label-out-of-range"
    assert any("row 137 of the data set, a Rows" in e["text"] for e in finding["evidence"])
    places = _written(lines, finding)
    assert all("# the call" not in place for place in places[:-1]), places


def test_a_rate_far_too_high_is_shown_at_the_users_argument(tmp_path: Path) -> None:
    """The Trainer lets the rate fall to 0: at the end most batches cost nothing, the others
    thousands.
    """
    lines, finding = _diagnosed(tmp_path, "transformers", rate="30.0", steps="120")
    assert (finding["fault"], finding["status"]) == ("optimizer.lr-too-high", "likely")
    assert _written(lines, finding)[0] == "learning_rate=30.0,"


def test_a_loss_of_the_users_own_is_shown_in_the_training_step(tmp_path: Path) -> None:
    loss = 'F.cross_entropy(self.net(**batch)["logits"].softmax(-1), batch["labels"])'
    lines, finding = _diagnosed(tmp_path, "lightning", loss=loss)
    assert finding["fault"] == "loss.double-softmax"
    assert _written(lines, finding) == [f"return {loss}"]
