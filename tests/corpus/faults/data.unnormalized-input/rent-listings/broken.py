"""Monthly rent from listing attributes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    n_listings: int = 3000
    batch_size: int = 64
    epochs: int = 4
    lr: float = 3e-3
    hidden: int = 64
    seed: int = 99


def load_listings(cfg: Config):
    """Columns: area in square feet, year built, metres to the centre, median income of the district, floor."""
    rng = np.random.default_rng(cfg.seed)
    n = cfg.n_listings
    area = rng.gamma(6.0, 160.0, n)
    year = rng.integers(1920, 2023, n).astype(float)
    metres = rng.uniform(200, 18000, n)
    income = rng.lognormal(10.8, 0.35, n)
    floor = rng.integers(0, 12, n).astype(float)
    rent = 1.1 * area * (1 + 0.4 * np.tanh((income - 52000) / 18000)) - 0.03 * metres + 4.0 * (year - 1970) + 12 * floor
    rent = rent + rng.normal(0, 60, n) + 600
    table = np.stack([area, year, metres, income, floor], axis=1).astype(np.float32)
    return table, (rent / 1000.0).astype(np.float32)


class RentModel(nn.Module):
    def __init__(self, n_features: int, hidden: int):
        super().__init__()
        self.inp = nn.Linear(n_features, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)
        self.act = nn.GELU()

    def forward(self, x):
        x = self.act(self.inp(x))
        x = x + self.act(self.mid(x))
        return self.out(x).squeeze(1)


class Experiment:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        np.random.seed(cfg.seed)
        table, rent = load_listings(cfg)
        cut = int(0.85 * len(table))
        train_x, val_x = table[:cut], table[cut:]
        self.train_data = TensorDataset(torch.from_numpy(train_x), torch.from_numpy(rent[:cut]))
        self.val_x, self.val_y = torch.from_numpy(val_x), torch.from_numpy(rent[cut:])
        self.model = RentModel(table.shape[1], cfg.hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss_fn = nn.SmoothL1Loss()

    def train_epoch(self):
        self.model.train()
        loader = DataLoader(self.train_data, batch_size=self.cfg.batch_size, shuffle=True, drop_last=True)
        total = 0.0
        for x, y in loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        prediction = self.model(self.val_x)
        return (prediction - self.val_y).abs().mean().item()

    def run(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            print(f"[{epoch + 1}/{self.cfg.epochs}] loss={loss:.4f} val_mae={1000 * self.validate():.0f} per month")


if __name__ == "__main__":
    Experiment(Config()).run()
