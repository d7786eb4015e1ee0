"""Heat demand that wanders: windows of the series, split by time, in Lightning."""

import math

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
hours = torch.arange(2600.0)
walk = torch.cumsum(0.15 * torch.randn(2600), 0)
demand = torch.sin(2 * math.pi * hours / 24) + walk
demand = (demand - demand.mean()) / demand.std()
SPAN, AHEAD = 48, 6
xs = torch.stack([demand[i : i + SPAN] for i in range(len(demand) - SPAN - AHEAD)])
ys = torch.stack([demand[i + SPAN + AHEAD - 1] for i in range(len(demand) - SPAN - AHEAD)])
everything = TensorDataset(xs, ys)
n = len(everything)
cut = int(0.8 * n)
train_set = TensorDataset(xs[: cut - SPAN - AHEAD], ys[: cut - SPAN - AHEAD])
val_set = TensorDataset(xs[cut:], ys[cut:])


class Forecaster(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(SPAN, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


trainer = L.Trainer(
    max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
)
trainer.fit(Forecaster(), DataLoader(train_set, batch_size=64, shuffle=True), DataLoader(val_set, batch_size=256))
print({k: float(v) for k, v in trainer.callback_metrics.items()})
