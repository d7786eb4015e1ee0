"""Hourly grid load, one step ahead, with a GRU."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


@dataclass
class Config:
    hours: int = 24 * 75
    lookback: int = 24
    hidden: int = 32
    batch_size: int = 64
    lr: float = 4e-3
    epochs: int = 5
    val_share: float = 0.2
    clip: float = 1.0
    seed: int = 21


def simulate_load(hours, rng):
    hour = np.arange(hours)
    daily = 6.0 * np.sin(2 * np.pi * (hour - 7) / 24)
    weekly = 2.0 * np.cos(2 * np.pi * hour / (24 * 7))
    drift = np.cumsum(rng.normal(0, 0.15, hours))
    return (50 + daily + weekly + drift + rng.normal(0, 0.5, hours)).astype(np.float32), hour


class LoadWindows(Dataset):
    """(past day of load with its hour of day, load of the next hour)."""

    def __init__(self, load, hour, lookback, mean, std):
        scaled = torch.from_numpy((load - mean) / std)
        angle = torch.from_numpy(2 * np.pi * (hour % 24) / 24).float()
        self.series = torch.stack([scaled, angle.sin(), angle.cos()], dim=-1)
        self.lookback = lookback

    def __len__(self):
        return len(self.series) - self.lookback

    def __getitem__(self, i):
        end = i + self.lookback
        return self.series[i:end], self.series[end, 0]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.out(states[:, -1]).squeeze(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        rng = np.random.default_rng(cfg.seed)
        load, hour = simulate_load(cfg.hours, rng)
        n_windows = cfg.hours - cfg.lookback
        n_train = int(n_windows * (1 - cfg.val_share))
        past = load[: n_train + cfg.lookback]
        windows = LoadWindows(load, hour, cfg.lookback, past.mean(), past.std())
        order = np.arange(n_windows)
        self.train_loader = DataLoader(Subset(windows, order[:n_train].tolist()), cfg.batch_size, shuffle=True)
        self.val_loader = DataLoader(Subset(windows, order[n_train:].tolist()), cfg.batch_size)
        self.model = Forecaster(cfg.hidden)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for past, target in self.train_loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.model(past), target)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.optimizer.step()
            total += loss.item() * len(target)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = 0.0
        for past, target in self.val_loader:
            total += self.loss_fn(self.model(past), target).item() * len(target)
        return total / len(self.val_loader.dataset)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch()
            print(f"epoch {epoch}: train mse {train_loss:.4f}, val mse {self.validate():.4f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
