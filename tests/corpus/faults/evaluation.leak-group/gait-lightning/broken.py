"""Gait classification (normal vs. shuffling) from ankle accelerometers, with Lightning."""

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.model_selection import ShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SUBJECTS = 30
WINDOWS_PER_SUBJECT = 24
WINDOW = 64


def record_study(rng):
    """Each subject walks for a few minutes; the recording is cut into two-second windows."""
    signals, labels, subjects = [], [], []
    t = np.arange(WINDOW) / 32.0
    for subject in range(NUM_SUBJECTS):
        shuffling = subject % 2
        cadence = rng.normal(1.9, 0.25)
        axis_gain = rng.normal(1.0, 0.35, 3)
        posture = rng.normal(0.0, 0.7, 3)
        for _ in range(WINDOWS_PER_SUBJECT):
            phase = rng.uniform(0, 2 * np.pi)
            step = np.sin(2 * np.pi * cadence * t + phase)
            swing = (0.45 if shuffling else 0.9) * np.sin(4 * np.pi * cadence * t + phase * 2)
            wave = (step + swing)[None, :] * axis_gain[:, None] + posture[:, None]
            signals.append(wave + rng.normal(0, 0.25, (3, WINDOW)))
            labels.append(shuffling)
            subjects.append(subject)
    return np.stack(signals).astype(np.float32), np.array(labels), np.array(subjects)


class GaitWindows(Dataset):
    def __init__(self, signals, labels, subjects, mean, std):
        self.signals = torch.from_numpy((signals - mean) / std)
        self.labels = torch.from_numpy(labels).long()
        self.subjects = torch.from_numpy(subjects).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"signal": self.signals[i], "label": self.labels[i], "subject": self.subjects[i]}


class GaitData(L.LightningDataModule):
    def __init__(self, batch_size=48, seed=5):
        super().__init__()
        self.batch_size = batch_size
        self.seed = seed

    def setup(self, stage=None):
        signals, labels, subjects = record_study(np.random.default_rng(self.seed))
        splitter = ShuffleSplit(n_splits=1, test_size=0.25, random_state=self.seed)
        train_idx, val_idx = next(splitter.split(signals, labels))
        mean = signals[train_idx].mean(axis=(0, 2), keepdims=True)[0]
        std = signals[train_idx].std(axis=(0, 2), keepdims=True)[0]
        self.train_set = GaitWindows(signals[train_idx], labels[train_idx], subjects[train_idx], mean, std)
        self.val_set = GaitWindows(signals[val_idx], labels[val_idx], subjects[val_idx], mean, std)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)


class GaitNet(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(
            nn.Conv1d(3, 16, 7, padding=3),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.head = nn.Linear(32 * 4, 2)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self(batch["signal"]), batch["label"])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self(batch["signal"])
        size = len(batch["label"])
        self.log("val_loss", F.cross_entropy(logits, batch["label"]), batch_size=size)
        self.log("val_acc", (logits.argmax(-1) == batch["label"]).float().mean(), batch_size=size)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(5)
    trainer = L.Trainer(
        max_epochs=7,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(GaitNet(), datamodule=GaitData())
    print({name: round(value.item(), 4) for name, value in trainer.callback_metrics.items()})
