"""Remaining-useful-life regression from sensor windows: GRU + LayerNorm + attention pooling, Lightning."""
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, random_split, TensorDataset

warnings.filterwarnings("ignore")


def sensor_windows(n, steps=16, sensors=6):
    """Wear grows linearly, sensors see it through a fixed mixing and noise; target is standardised wear."""
    wear = torch.randn(n)
    trend = torch.linspace(0.5, 1.0, steps)
    mixing = torch.randn(sensors)
    x = wear[:, None, None] * trend[None, :, None] * mixing + torch.randn(n, steps, sensors)
    return TensorDataset(x / 1.3, wear)


class WearModel(pl.LightningModule):
    def __init__(self, sensors=6, hidden=32, lr=4e-3, weight_decay=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Linear(sensors, hidden)
        self.embed_norm = nn.LayerNorm(hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.attend = nn.Linear(hidden, 1, bias=False)
        self.regress = nn.Linear(hidden, 1)
        self.loss = nn.HuberLoss()

    def forward(self, x):
        h, _ = self.gru(torch.tanh(self.embed_norm(self.embed(x))))
        h = self.norm(h)
        weights = self.attend(h).softmax(dim=1)
        return self.regress((weights * h).sum(dim=1)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        if batch_idx % 12 == 0:
            print(f"  epoch {self.current_epoch} batch {batch_idx:2d} loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mae", (self(x) - y).abs().mean(), batch_size=len(y))

    def on_validation_epoch_end(self):
        print(f"val mae {self.trainer.callback_metrics['val_mae']:.4f}")

    def configure_optimizers(self):
        weights = [p for p in self.parameters() if p.dim() > 1]
        rest = [p for p in self.parameters() if p.dim() <= 1]
        return torch.optim.AdamW(
            [{"params": weights, "weight_decay": self.hparams.weight_decay}, {"params": rest, "weight_decay": 0.0}],
            lr=self.hparams.lr,
        )


def main():
    pl.seed_everything(46, verbose=False)
    train_set, val_set = random_split(sensor_windows(1600), [1280, 320])
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        WearModel(),
        DataLoader(train_set, batch_size=32, shuffle=True),
        DataLoader(val_set, batch_size=64),
    )


if __name__ == "__main__":
    main()
