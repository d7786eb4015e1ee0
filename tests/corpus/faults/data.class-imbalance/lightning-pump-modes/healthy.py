"""Pump condition monitoring: predict the failure mode from vibration features (Lightning)."""

import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
MODES = ["normal", "cavitation", "bearing", "seal"]
PREVALENCE = [0.965, 0.015, 0.012, 0.008]


def vibration_features(n, seed):
    rng = np.random.default_rng(seed)
    mode = rng.choice(len(MODES), size=n, p=PREVALENCE)
    centers = np.random.default_rng(5).normal(0, 1.0, (len(MODES), 16))
    x = rng.normal(0, 1.0, (n, 16)) + 0.9 * centers[mode]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(mode)


class PumpData(L.LightningDataModule):
    def __init__(self, batch_size=128):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        train_x, train_y = vibration_features(8000, 1)
        val_x, val_y = vibration_features(2000, 2)
        mean, std = train_x.mean(0), train_x.std(0)
        self.train_set = TensorDataset((train_x - mean) / std, train_y)
        self.val_set = TensorDataset((val_x - mean) / std, val_y)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=500)


class PumpClassifier(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, len(MODES)))
        weight = 1.0 / torch.tensor(PREVALENCE)
        self.register_buffer("class_weight", weight / weight.mean())
        self.confusion = torch.zeros(len(MODES), len(MODES))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y, weight=self.class_weight)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x).argmax(-1)
        for t, p in zip(y.tolist(), pred.tolist(), strict=True):
            self.confusion[t, p] += 1

    def on_validation_epoch_end(self):
        recall = self.confusion.diag() / self.confusion.sum(1).clamp(min=1)
        accuracy = self.confusion.diag().sum() / self.confusion.sum()
        print(f"epoch {self.current_epoch}: accuracy {accuracy:.3f} recall " + " ".join(f"{r:.2f}" for r in recall))
        self.confusion.zero_()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(42, verbose=False)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(PumpClassifier(), datamodule=PumpData())
