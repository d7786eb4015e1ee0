"""How many people are in the room: a GRU over half an hour of sensor readings (Lightning)."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CLASSES = 4


class RoomData(L.LightningDataModule):
    columns = ("co2_ppm", "lux", "celsius", "humidity")

    def __init__(self, rooms=1100, minutes=30, batch_size=32, seed=3):
        super().__init__()
        self.rooms, self.minutes, self.batch_size, self.seed = rooms, minutes, batch_size, seed

    def setup(self, stage=None):
        rng, shape = np.random.default_rng(self.seed), (self.rooms, self.minutes)
        people = rng.integers(0, CLASSES, size=self.rooms)
        minute = np.arange(self.minutes)
        co2 = rng.normal(520, 60, (self.rooms, 1)) + people[:, None] * 9.0 * minute + rng.normal(0, 15, shape)
        lux = np.where(people > 0, 430, 60)[:, None] + rng.normal(0, 90, shape)
        celsius = rng.normal(21, 1.2, (self.rooms, 1)) + people[:, None] * 0.03 * minute + rng.normal(0, 0.1, shape)
        humidity = rng.normal(40, 6, (self.rooms, 1)) + people[:, None] * 0.06 * minute + rng.normal(0, 0.4, shape)
        readings = torch.tensor(np.stack([co2, lux, celsius, humidity], axis=-1), dtype=torch.float32)
        people = torch.tensor(people)
        cut = int(0.8 * self.rooms)
        self.mean = readings[:cut].mean(dim=(0, 1))
        self.std = readings[:cut].std(dim=(0, 1))
        self.train_set = TensorDataset(readings[:cut], people[:cut])
        self.val_set = TensorDataset(readings[cut:], people[cut:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=128)


class Occupancy(L.LightningModule):
    def __init__(self, features=4, hidden=32, lr=4e-3):
        super().__init__()
        self.lr = lr
        self.rnn = nn.GRU(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, CLASSES)
        self.history = []

    def forward(self, readings):
        _, last = self.rnn(readings)
        return self.out(last[-1])

    def training_step(self, batch, _):
        readings, people = batch
        loss = nn.functional.cross_entropy(self(readings), people)
        self.history.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        readings, people = batch
        self.log("val_acc", (self(readings).argmax(-1) == people).float().mean())

    def on_train_epoch_end(self):
        recent = self.history[-28:]
        print(f"epoch {self.current_epoch} loss {sum(recent) / len(recent):.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(3, verbose=False)
    data = RoomData()
    model = Occupancy()
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(model, datamodule=data)
    print({k: round(float(v), 3) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
