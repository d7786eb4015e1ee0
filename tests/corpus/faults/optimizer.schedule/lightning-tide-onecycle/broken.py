import math

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TideForecaster(L.LightningModule):
    """Two-layer LSTM, 36 hours in, next 6 hours out."""

    def __init__(self, hidden=32, horizon=6, max_lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, horizon)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_mse", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self(x), y))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} train {m['train_mse']:.4f} val {m['val_mse']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.max_lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return [optimizer], [scheduler]


def tide_windows(n, seed):
    g = torch.Generator().manual_seed(seed)
    t0 = 1000 * torch.rand(n, 1, generator=g)
    t = t0 + torch.arange(42.0)
    level = torch.sin(2 * math.pi * t / 12.42) + 0.5 * torch.sin(2 * math.pi * t / 23.93) + 0.1 * torch.randn(t.shape, generator=g)
    level = level / level.std()
    return TensorDataset(level[:, :36].unsqueeze(-1), level[:, 36:])


def main():
    L.seed_everything(33)
    train = DataLoader(tide_windows(576, 1), batch_size=32, shuffle=True)
    val = DataLoader(tide_windows(96, 2), batch_size=96)
    trainer = L.Trainer(
        max_epochs=6,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(TideForecaster(), train, val)


if __name__ == "__main__":
    main()
