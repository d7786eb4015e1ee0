"""Convolutional autoencoder of blob images; the rate is reduced when validation stalls."""
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau


@dataclass
class Settings:
    seed: int = 31
    epochs: int = 4
    batch: int = 32
    learning_rate: float = 3e-3
    latent: int = 12


def blobs(count, rng):
    grid_y, grid_x = np.mgrid[0:12, 0:12]
    cx, cy = rng.uniform(2, 10, (2, count, 1, 1))
    width = rng.uniform(1.0, 2.5, (count, 1, 1))
    images = np.exp(-((grid_x - cx) ** 2 + (grid_y - cy) ** 2) / (2 * width**2))
    images = (images - images.mean()) / images.std()
    return torch.tensor(images[:, None], dtype=torch.float32)


class AutoEncoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.to_latent = nn.Linear(16 * 9, latent)
        self.from_latent = nn.Linear(latent, 16 * 9)
        self.up = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)
        )

    def forward(self, x):
        z = self.to_latent(self.down(x).flatten(1))
        return self.up(F.relu(self.from_latent(z)).view(-1, 16, 3, 3))


class Experiment:
    def __init__(self, settings):
        self.s = settings
        rng = np.random.default_rng(settings.seed)
        self.train_set, self.held_out = blobs(960, rng), blobs(128, rng)
        self.net = AutoEncoder(settings.latent)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=settings.learning_rate)
        self.plateau = ReduceLROnPlateau(self.opt, factor=0.5, patience=2)

    def fit(self):
        for epoch in range(self.s.epochs):
            self.net.train()
            total = 0.0
            for rows in torch.randperm(len(self.train_set)).split(self.s.batch):
                batch = self.train_set[rows]
                loss = F.mse_loss(self.net(batch), batch)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(rows)
            held = self.validate()
            self.plateau.step(held)
            print(f"epoch {epoch} train {total / len(self.train_set):.4f} held-out {held:.4f}")

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        return F.mse_loss(self.net(self.held_out), self.held_out).item()


if __name__ == "__main__":
    settings = Settings()
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)
    Experiment(settings).fit()
