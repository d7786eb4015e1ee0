import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(19)


class Demand(L.LightningModule):
    def __init__(self, hidden=32, lr=4e-3):
        super().__init__()
        self.lr = lr
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, history):
        _, last = self.gru(history)
        return self.head(last[-1])

    def training_step(self, batch, _):
        history, demand = batch
        error = (self(history) - demand).abs().mean()
        self.log("train", error)
        return error

    def validation_step(self, batch, _):
        history, demand = batch
        self.log("val", (self(history).view(-1) - demand).abs().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)}


def series(n):
    t = np.arange(21)
    phase = np.random.uniform(0, 6.28, (n, 1))
    level = np.random.normal(0, 0.7, (n, 1))
    s = level + np.sin(t / 2.5 + phase) + np.random.normal(0, 0.05, (n, 21))
    promo = np.random.normal(0, 1, (n, 20))
    x = np.stack([s[:, :-1], promo], -1)
    y = s[:, -1] + 0.3 * promo[:, -1]
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Demand(), DataLoader(series(800), 32, shuffle=True), DataLoader(series(100), 50))
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
