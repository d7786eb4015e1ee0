"""LightningModule with automatic optimization, validation every epoch and a per-step OneCycle schedule."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class RingsData(L.LightningDataModule):
    def __init__(self, batch_size=50):
        super().__init__()
        self.batch_size = batch_size

    @staticmethod
    def rings(n, seed):
        g = torch.Generator().manual_seed(seed)
        y = torch.randint(0, 3, (n,), generator=g)
        angle = torch.rand(n, generator=g) * 6.283
        radius = 0.6 + 0.6 * y + 0.12 * torch.randn(n, generator=g)
        xy = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
        return TensorDataset(torch.cat([xy, torch.randn(n, 4, generator=g)], 1), y)

    def setup(self, stage=None):
        self.train_set, self.val_set = self.rings(1500, 1), self.rings(300, 2)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=100)


class RingClassifier(L.LightningModule):
    def __init__(self, width=64, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3)
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print({k: round(v.item(), 3) for k, v in metrics.items()})

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
    )
    trainer.fit(RingClassifier(), datamodule=RingsData())
