"""Household consumption model on smart-meter records, trained with Lightning."""

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(21)


def read_meter_export(n=1600):
    rng = np.random.default_rng(21)
    hour = rng.integers(0, 24, n)
    temp = rng.normal(11, 7, n)
    people = rng.integers(1, 6, n)
    area = rng.uniform(40, 180, n)
    kwh = 0.15 * people + 0.004 * area + 0.03 * np.clip(18 - temp, 0, None) + 0.35 * np.sin(2 * np.pi * (hour - 12) / 24)
    kwh = np.clip(kwh + rng.normal(0, 0.06, n), 0.02, None)
    frame = pd.DataFrame({"hour": hour, "temp": temp, "people": people, "area": area, "kwh": kwh})
    frame.loc[811, "kwh"] = frame.loc[811, "kwh"] * 1000.0
    return frame


def to_tensors(frame):
    x = np.stack(
        [
            np.sin(2 * np.pi * frame["hour"] / 24),
            np.cos(2 * np.pi * frame["hour"] / 24),
            (frame["temp"] - 11.0) / 7.0,
            (frame["people"] - 3.0) / 1.4,
            (frame["area"] - 110.0) / 40.0,
        ],
        axis=1,
    )
    median = frame["kwh"].median()
    spread = (frame["kwh"].quantile(0.75) - frame["kwh"].quantile(0.25)) / 1.35
    y = (frame["kwh"] - median) / spread
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y.to_numpy(), dtype=torch.float32))


class ConsumptionModel(L.LightningModule):
    def __init__(self, lr=5e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(5, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class PrintEpoch(L.Callback):
    def on_train_epoch_end(self, trainer, module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch} train {m['train_loss_epoch']:.3f} val {m['val_loss']:.3f}")


def main():
    frame = read_meter_export()
    train = to_tensors(frame.iloc[:1360])
    val = to_tensors(frame.iloc[1360:])
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[PrintEpoch()],
    )
    trainer.fit(
        ConsumptionModel(),
        DataLoader(train, batch_size=32, shuffle=True, drop_last=True),
        DataLoader(val, batch_size=120),
    )


if __name__ == "__main__":
    main()
