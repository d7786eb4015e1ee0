"""Remaining battery life from charge curves (Lightning)."""

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ChargeCurves(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        rng = np.random.default_rng(0)
        t = np.linspace(0, 1, 40)
        fade = rng.uniform(0, 1, 900)
        curve = 1 - np.exp(-t[None] * (3 + 4 * fade[:, None])) + 0.1 * rng.normal(size=(900, 40))
        curve = (curve - curve[:768].mean()) / curve[:768].std()
        life = (fade - fade[:768].mean()) / fade[:768].std()
        x, y = torch.tensor(curve, dtype=torch.float32), torch.tensor(life, dtype=torch.float32)
        self.train_set = TensorDataset(x[:768], y[:768])
        self.val_set = TensorDataset(x[768:], y[768:])

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 66)


class LifeRegressor(L.LightningModule):
    def __init__(self, lr=4e-4):
        super().__init__()
        self.lr = lr
        self.model = nn.Sequential(nn.Linear(40, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))

    def forward(self, x):
        return self.model(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_mse", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mae", (self(x) - y).abs().mean())

    def on_train_epoch_end(self):
        print({k: round(float(v), 4) for k, v in self.trainer.callback_metrics.items()})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


def main():
    L.seed_everything(14)
    trainer = L.Trainer(
        max_epochs=6,
        accelerator="cpu",
        devices=1,
        precision="32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(LifeRegressor(), datamodule=ChargeCurves())


if __name__ == "__main__":
    main()
