"""Predict whether a molecule binds from its descriptors with Lightning."""

import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class AssayData(L.LightningDataModule):
    def __init__(self, num_train=2400, batch_size=32):
        super().__init__()
        self.num_train = num_train
        self.batch_size = batch_size

    def setup(self, stage=None):
        gen = torch.Generator().manual_seed(7)
        descriptors = torch.randn(3000, 40, generator=gen)
        direction = torch.randn(40, generator=gen) / 40**0.5
        interaction = descriptors[:, 0] * descriptors[:, 1]
        affinity = 1.5 * (descriptors @ direction) + 0.6 * interaction + 0.5 * torch.randn(3000, generator=gen)
        binds = (affinity > 0).float()
        order = torch.randperm(3000, generator=gen)
        train, valid = order[: self.num_train], order[2500:]
        self.train_set = TensorDataset(descriptors[train], binds[train])
        self.valid_set = TensorDataset(descriptors[valid], binds[valid])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.valid_set, batch_size=250)


class AffinityModel(L.LightningModule):
    def __init__(self, width=128, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Linear(40, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.binary_cross_entropy_with_logits(self(x), y), on_epoch=True)

    def on_validation_epoch_end(self):
        print({name: round(float(value), 4) for name, value in self.trainer.callback_metrics.items()})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(7)
    trainer = L.Trainer(
        max_steps=225,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        val_check_interval=25,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
    )
    trainer.fit(AffinityModel(), AssayData())
