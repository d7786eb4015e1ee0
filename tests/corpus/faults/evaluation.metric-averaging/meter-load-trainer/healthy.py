"""Forecast the next hours of electric load per meter.  Trainer class, dataclass config."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    history: int = 24
    horizon: int = 6
    hidden: int = 32
    batch_size: int = 64
    epochs: int = 8
    lr: float = 3e-3
    seed: int = 3


def make_windows(num_meters: int, per_meter: int, cfg: Config, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    xs, ys = [], []
    for _ in range(num_meters):
        phase, level, size = rng.uniform(0, 2 * math.pi), rng.normal(0, 0.3), rng.uniform(0.7, 1.3)
        noise = rng.uniform(0.05, 0.3)
        for _ in range(per_meter):
            start = rng.uniform(0, 24)
            t = start + np.arange(cfg.history + cfg.horizon)
            load = level + size * np.sin(2 * math.pi * t / 24 + phase) + noise * rng.standard_normal(t.size)
            xs.append(load[: cfg.history])
            ys.append(load[cfg.history :])
    return torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ys), dtype=torch.float32)


class LoadNet(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, cfg.hidden, batch_first=True)
        self.out = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, history: Tensor) -> Tensor:
        _, last = self.rnn(history.unsqueeze(-1))
        return self.out(last[-1])


class Trainer:
    def __init__(self, cfg: Config) -> None:
        self.cfg = cfg
        random.seed(cfg.seed)
        np.random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        rng = np.random.default_rng(cfg.seed)
        self.train_loader = DataLoader(TensorDataset(*make_windows(40, 20, cfg, rng)), cfg.batch_size, shuffle=True)
        self.valid_loader = DataLoader(TensorDataset(*make_windows(10, 20, cfg, rng)), cfg.batch_size)
        self.model = LoadNet(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss = nn.SmoothL1Loss()

    def train_epoch(self) -> float:
        self.model.train()
        total, count = 0.0, 0
        for history, future in self.train_loader:
            loss = self.loss(self.model(history), future)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(history)
            count += len(history)
        return total / count

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        self.model.eval()
        mae, mse, count = 0.0, 0.0, 0
        for history, future in self.valid_loader:
            error = self.model(history) - future
            mae += error.abs().mean(dim=1).sum().item()
            mse += error.pow(2).mean(dim=1).sum().item()
            count += len(history)
        return {"mae": mae / count, "rmse": math.sqrt(mse / count)}

    def fit(self) -> None:
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch()
            scores = self.validate()
            print(f"epoch {epoch} train {train_loss:.4f} " + " ".join(f"{k} {v:.4f}" for k, v in scores.items()))


if __name__ == "__main__":
    Trainer(Config()).fit()
