"""Latent model of sensor curves, written as a LightningModule."""

import logging
import random
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

POINTS, LATENT = 32, 4


def curves(n, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, POINTS)
    amplitude = rng.uniform(0.5, 2.0, (n, 1))
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    slope = rng.normal(size=(n, 1))
    x = amplitude * np.sin(2 * np.pi * t + phase) + slope * (t - 0.5) + 0.05 * rng.normal(size=(n, POINTS))
    return torch.tensor(x / x.std(), dtype=torch.float32)


class CurveModel(L.LightningModule):
    def __init__(self, width=64, kl_weight=0.02):
        super().__init__()
        self.kl_weight = kl_weight
        self.encoder = nn.Sequential(
            nn.Linear(POINTS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2 * LATENT)
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, POINTS)
        )
        self.history = []

    def posterior(self, x):
        mean, raw = self.encoder(x).chunk(2, dim=-1)
        return Normal(mean, F.softplus(raw) + 1e-3)

    def _terms(self, x):
        q = self.posterior(x)
        z = q.sample()
        reconstruction = F.mse_loss(self.decoder(z), x)
        prior = Normal(torch.zeros_like(q.loc), torch.ones_like(q.scale))
        return reconstruction, kl_divergence(q, prior).sum(-1).mean()

    def training_step(self, batch, _):
        reconstruction, divergence = self._terms(batch[0])
        self.history.append(reconstruction.item())
        return reconstruction + self.kl_weight * divergence

    def validation_step(self, batch, _):
        reconstruction, divergence = self._terms(batch[0])
        print(f"epoch {self.current_epoch}: valid reconstruction {reconstruction:.4f}  kl {divergence:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main():
    random.seed(0)
    np.random.seed(0)
    L.seed_everything(0)
    train = DataLoader(TensorDataset(curves(640, 1)), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(curves(128, 2)), batch_size=128)
    model = CurveModel()
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, train, valid)
    print(f"reconstruction {np.mean(model.history[:5]):.4f} -> {np.mean(model.history[-5:]):.4f}")


if __name__ == "__main__":
    main()
