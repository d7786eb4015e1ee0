"""Estimating how many people are in a frame; large frames, so gradients are accumulated."""

import logging
import random
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

BATCH_SIZE = 2
ACCUMULATE = 16


def frames(n, seed):
    gen = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    counts = torch.randint(1, 13, (n,), generator=gen)
    images = 0.3 * torch.randn(n, 24, 24, generator=gen)
    for i, c in enumerate(counts.tolist()):
        for cy, cx in torch.rand(c, 2, generator=gen) * 20 + 2:
            images[i] += torch.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 3)
    return images.unsqueeze(1), counts.float()


class CrowdCounter(pl.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.regressor = nn.Sequential(
            nn.Linear(32, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )
        self.criterion = nn.SmoothL1Loss()

    def forward(self, image):
        return self.regressor(self.backbone(image)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        image, count = batch
        loss = self.criterion(self(image), count)
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=len(image))
        return loss

    def validation_step(self, batch, batch_idx):
        image, count = batch
        guess = self(image)
        self.log("val_loss", self.criterion(guess, count), batch_size=len(image))
        self.log("val_corr", torch.corrcoef(torch.stack([guess, count]))[0, 1], batch_size=len(image))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} train {m['train_loss']:.4f} val {m['val_loss']:.4f} corr {m['val_corr']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    pl.seed_everything(23, verbose=False)
    random.seed(23)
    np.random.seed(23)
    x, y = frames(1120, seed=1)
    train_x, val_x = x[:960], x[960:]
    mean, std = train_x.mean(), train_x.std()
    centre, spread = y[:960].mean(), y[:960].std()
    train = TensorDataset((train_x - mean) / std, (y[:960] - centre) / spread)
    val = TensorDataset((val_x - mean) / std, (y[960:] - centre) / spread)
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        accumulate_grad_batches=ACCUMULATE,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        CrowdCounter(),
        DataLoader(train, batch_size=BATCH_SIZE, shuffle=True),
        DataLoader(val, batch_size=80),
    )


if __name__ == "__main__":
    main()
