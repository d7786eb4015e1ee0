"""Which of two alarms came first? Encoder over an event window, written for Lightning."""
import math

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVENTS, WINDOW = 32, 12
ALARM_A, ALARM_B = 0, 1


def event_windows(n, generator):
    x = torch.randint(2, EVENTS, (n, WINDOW), generator=generator)
    first = torch.randint(0, WINDOW // 2, (n,), generator=generator)
    second = torch.randint(WINDOW // 2, WINDOW, (n,), generator=generator)
    y = torch.randint(0, 2, (n,), generator=generator)
    rows = torch.arange(n)
    x[rows, first] = torch.where(y == 0, ALARM_A, ALARM_B)
    x[rows, second] = torch.where(y == 0, ALARM_B, ALARM_A)
    return TensorDataset(x, y)


def sine_table(length, dim):
    place = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(1000.0) / dim))
    table = torch.empty(length, dim)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)
    return table


class OrderModel(pl.LightningModule):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, dim)
        self.register_buffer("table", sine_table(WINDOW, dim), persistent=False)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.out = nn.Linear(dim, 2)
        self.loss = nn.CrossEntropyLoss()
        self.history = []

    def forward(self, x):
        h = self.embed(x) + self.table[: x.shape[1]]
        return self.out(self.encoder(h).mean(1))

    def training_step(self, batch, _):
        x, y = batch
        loss = self.loss(self(x), y)
        self.history.append(loss.item())
        return loss

    def on_train_epoch_end(self):
        last = self.history[-10:]
        print(f"epoch {self.current_epoch} training loss {sum(last) / len(last):.4f}")

    def validation_step(self, batch, _):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    pl.seed_everything(9, verbose=False)
    g = torch.Generator().manual_seed(9)
    train = DataLoader(event_windows(1600, g), batch_size=50, shuffle=True)
    valid = DataLoader(event_windows(300, g), batch_size=150)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(OrderModel(), train, valid)
    print("validation accuracy", round(trainer.callback_metrics["accuracy"].item(), 3))
