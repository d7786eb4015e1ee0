"""Bird call classifier: Lightning, spectrogram crops and noise drawn on the fly in the loader's workers."""
import logging
import random
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")

SEED = 2024


def init_worker(worker_id):
    seed = SEED
    np.random.seed(seed)
    random.seed(seed)


class Calls(Dataset):
    def __init__(self, n, train, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, n)
        self.train = train
        t = np.linspace(0, 1, 48)
        self.specs = 0.5 * rng.standard_normal((n, 16, 48)).astype(np.float32)
        for spec, label in zip(self.specs, self.labels):
            base = rng.uniform(5, 9)
            sweep = [lambda u: 4 * u, lambda u: -4 * u, lambda u: 3 * np.sin(12 * u), lambda u: 0 * u][label]
            rows = np.clip(np.round(base + sweep(t)), 0, 15).astype(int)
            spec[rows, np.arange(48)] += 3.0

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spec = self.specs[i]
        if self.train:
            start = np.random.randint(0, 9)
            spec = spec[:, start:start + 40] * np.random.uniform(0.8, 1.2)
            spec = spec + 0.3 * np.random.randn(*spec.shape)
            if random.random() < 0.3:
                row = random.randint(0, 14)
                spec[row:row + 2] = 0.0
        else:
            spec = spec[:, 4:44]
        return torch.as_tensor(spec, dtype=torch.float32).unsqueeze(0), int(self.labels[i])


class CallsData(L.LightningDataModule):
    def __init__(self, batch_size=32, workers=2):
        super().__init__()
        self.batch_size, self.workers = batch_size, workers

    def setup(self, stage=None):
        self.train_set = Calls(960, True, 1)
        self.val_set = Calls(160, False, 2)

    def train_dataloader(self):
        return DataLoader(
            self.train_set, self.batch_size, shuffle=True, num_workers=self.workers, worker_init_fn=init_worker, drop_last=True
        )

    def val_dataloader(self):
        return DataLoader(self.val_set, 80)


class BirdNet(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 4 * 10, 64), nn.ReLU(), nn.Linear(64, 4))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), prog_bar=False)

    def on_train_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: loss {metrics['train_loss']:.3f} val_acc {metrics['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(SEED)
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )
    trainer.fit(BirdNet(), CallsData())
