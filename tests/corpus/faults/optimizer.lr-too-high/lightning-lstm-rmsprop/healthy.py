"""Next-value forecasting of noisy oscillations with an LSTM in a LightningModule."""
import math
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")

WINDOW = 20


def make_series(count):
    """Sums of two sines with random phase; the value after the window is to be predicted."""
    t = torch.arange(WINDOW + 1, dtype=torch.float32)
    p = torch.rand(count, 2, 1) * 2 * math.pi
    f = torch.tensor([[0.35], [0.9]])
    s = torch.sin(f * t + p).sum(dim=1) + 0.05 * torch.randn(count, WINDOW + 1)
    return s[:, :WINDOW].unsqueeze(-1), s[:, WINDOW:]


class Forecaster(pl.LightningModule):
    def __init__(self, hidden: int = 24, lr: float = 0.003):
        super().__init__()
        self.save_hyperparameters()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)
        self.criterion = nn.MSELoss()

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.readout(out[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=len(x))
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", self.criterion(self(x), y), batch_size=len(x))

    def on_train_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(
            f"epoch {self.current_epoch}: train {metrics['train_loss']:.4f}"
            f"  val {metrics['val_loss']:.4f}"
        )

    def configure_optimizers(self):
        return torch.optim.RMSprop(self.parameters(), lr=self.hparams.lr, alpha=0.95)


def main():
    pl.seed_everything(99, verbose=False)
    x, y = make_series(1408)
    train_set, val_set = TensorDataset(x[:1152], y[:1152]), TensorDataset(x[1152:], y[1152:])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        devices=1,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Forecaster(), train_loader, val_loader)


if __name__ == "__main__":
    main()
