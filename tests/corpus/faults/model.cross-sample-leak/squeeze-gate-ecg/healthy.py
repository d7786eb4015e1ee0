import argparse
import math
import random

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def synth_ecg(n: int, seed: int):
    """Two-lead beats; the class is the heart rate band and whether the second lead lags."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 4, 96)
    y = rng.integers(0, 4, n)
    rate = np.where(y % 2 == 0, 1.2, 1.9) + rng.uniform(-0.15, 0.15, n)
    lag = np.where(y < 2, 0.0, 0.9)
    phase = rng.uniform(0, 2 * math.pi, n)
    angle = 2 * math.pi * rate[:, None] * t + phase[:, None]
    leads = np.stack([np.sin(angle) ** 5, np.sin(angle - lag[:, None]) ** 5], axis=1)
    leads = leads * rng.uniform(0.7, 1.3, (n, 1, 1)) + 0.15 * rng.standard_normal(leads.shape)
    return torch.tensor(leads / 0.5, dtype=torch.float32), torch.tensor(y)


class SqueezeGate(nn.Module):
    def __init__(self, channels: int, reduction: int = 4):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x):
        s = x.transpose(1, 2).mean(dim=1, keepdim=True)
        s = torch.sigmoid(self.fc2(F.silu(self.fc1(s))))
        return x * s.transpose(1, 2)


class Residual(nn.Module):
    def __init__(self, cin: int, cout: int):
        super().__init__()
        self.conv1 = nn.Conv1d(cin, cout, 7, stride=2, padding=3, bias=False)
        self.norm1 = nn.GroupNorm(4, cout)
        self.conv2 = nn.Conv1d(cout, cout, 5, padding=2, bias=False)
        self.norm2 = nn.GroupNorm(4, cout)
        self.gate = SqueezeGate(cout)
        self.skip = nn.Conv1d(cin, cout, 1, stride=2)

    def forward(self, x):
        h = F.silu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.silu(self.gate(h) + self.skip(x))


class BeatNet(L.LightningModule):
    def __init__(self, lr: float):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(Residual(2, 16), Residual(16, 32))
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        return self.fc(self.body(x).mean(-1))

    def training_step(self, batch, idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        if idx % 10 == 0:
            print(f"batch {idx} loss {loss.item():.3f}")
        return loss

    def validation_step(self, batch, idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(-1) == y).float().mean())

    def on_validation_epoch_end(self):
        print("val acc", round(float(self.trainer.callback_metrics["val_acc"]), 3))

    def configure_optimizers(self):
        return torch.optim.RAdam(self.parameters(), lr=self.lr)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--epochs", type=int, default=3)
    opts = ap.parse_args()
    random.seed(17)
    L.seed_everything(17, verbose=False)
    train = DataLoader(TensorDataset(*synth_ecg(960, 0)), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(*synth_ecg(192, 1)), batch_size=64)
    trainer = L.Trainer(
        max_epochs=opts.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(BeatNet(opts.lr), train, val)


if __name__ == "__main__":
    main()
