"""Stripe orientation in uint8 images, Lightning data module with separate transforms for both splits."""
import logging
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


def to_tensor(image):
    return torch.from_numpy(image).unsqueeze(0).float() / 255.0


def jitter(image):
    return image * (0.9 + 0.2 * torch.rand(1))


def normalise(image):
    return (image - 0.5) / 0.25


class Stripes(Dataset):
    def __init__(self, n, seed, transform):
        rng = np.random.default_rng(seed)
        row, col = np.mgrid[0:12, 0:12]
        self.labels = rng.integers(3, size=n)
        phase = rng.uniform(0, 6.28, size=(n, 1, 1))
        along = np.stack([row, col, (row + col) / 1.4])[self.labels]
        pixels = 127 + 70 * np.sin(along * 1.2 + phase) + rng.normal(0, 40, size=(n, 12, 12))
        self.images = pixels.clip(0, 255).astype(np.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.images[i]), int(self.labels[i])


class StripeData(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Stripes(800, 1, Compose(to_tensor, jitter, normalise)), batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(Stripes(200, 2, Compose(to_tensor)), batch_size=100)


class StripeNet(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 16, 3)
        )
        self.losses = []

    def training_step(self, batch, batch_idx):
        image, label = batch
        loss = F.cross_entropy(self.net(image), label)
        self.losses.append(loss.item())
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} loss {np.mean(self.losses):.4f}")
        self.losses.clear()

    def validation_step(self, batch, batch_idx):
        image, label = batch
        scores = self.net(image)
        self.log("val_loss", F.cross_entropy(scores, label), batch_size=len(label))
        self.log("val_acc", (scores.argmax(1) == label).float().mean(), batch_size=len(label))

    def on_validation_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(f"validation loss {metrics['val_loss']:.4f} accuracy {metrics['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    pl.seed_everything(35, verbose=False)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(StripeNet(), datamodule=StripeData())
