"""Predict a delivery time from order features; Lightning with manual optimisation."""
import logging
import warnings

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class OrdersModule(pl.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        weights = torch.randn(10) / 10**0.5
        self.splits = {}
        for name, n in (("train", 960), ("val", 256)):
            x = torch.randn(n, 10)
            y = x @ weights + 0.5 * torch.tanh(2 * x[:, 0] * x[:, 1]) + 0.1 * torch.randn(n)
            self.splits[name] = TensorDataset(x, y.unsqueeze(1))

    def train_dataloader(self):
        return DataLoader(self.splits["train"], batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.splits["val"], batch_size=self.batch_size)


class DeliveryTime(pl.LightningModule):
    def __init__(self, lr=5e-3):
        super().__init__()
        self.automatic_optimization = False
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
        self.loss = nn.SmoothL1Loss()
        self.seen = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        opt = self.optimizers()
        opt.zero_grad()
        loss = self.loss(self(x), y)
        self.manual_backward(loss)
        self.seen.append(loss.item())

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} train loss {sum(self.seen) / len(self.seen):.4f}")
        self.seen.clear()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", self.loss(self(x), y), batch_size=len(x))

    def on_validation_epoch_end(self):
        print(f"val loss {self.trainer.callback_metrics['val_loss'].item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    pl.seed_everything(19, verbose=False)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(DeliveryTime(), datamodule=OrdersModule())


if __name__ == "__main__":
    main()
