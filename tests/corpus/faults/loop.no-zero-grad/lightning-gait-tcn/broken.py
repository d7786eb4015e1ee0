"""Gait phase classification from accelerometer windows: temporal convolutions, Lightning with manual optimisation."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def gait_windows(n, seed, length=48):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    t = np.arange(length)
    x = np.zeros((n, 3, length), dtype=np.float32)
    for i, phase in enumerate(y):
        start = rng.uniform(0, 2 * np.pi)
        w = [0.2, 0.35, 0.35, 0.6][phase]
        x[i, 0] = np.sin(w * t + start)
        x[i, 1] = np.cos(w * t + start) * (1.0 if phase != 2 else -1.0)
        x[i, 2] = 0.5 * np.sin(2 * w * t + start)
    x += 0.4 * rng.standard_normal(x.shape).astype(np.float32)
    return TensorDataset(torch.from_numpy(x / x.std()), torch.from_numpy(y))


class DilatedBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(1, channels)

    def forward(self, x):
        return x + F.relu(self.norm(self.conv(x)))


class GaitTCN(L.LightningModule):
    def __init__(self, channels=24, lr=0.05):
        super().__init__()
        self.automatic_optimization = False
        self.lr = lr
        self.stem = nn.Conv1d(3, channels, 5, padding=2)
        self.blocks = nn.Sequential(*[DilatedBlock(channels, 2**i) for i in range(3)])
        self.head = nn.Linear(channels, 4)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.stem(x))).mean(-1))

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
        opt.step()
        self.log("train_loss", loss, on_step=False, on_epoch=True)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": (logits.argmax(1) == y).float().mean()})

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print({k: round(float(v), 4) for k, v in self.trainer.callback_metrics.items()})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(21, verbose=False)
    train_loader = DataLoader(gait_windows(960, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(gait_windows(240, 2), batch_size=80)
    trainer = L.Trainer(
        max_epochs=5, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(GaitTCN(), train_loader, val_loader)
