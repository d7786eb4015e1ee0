"""Day-ahead load forecasting for one distribution feeder, in two legs (the queue ends a job after its time slot)."""

import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    history: int = 48
    horizon: int = 12
    hidden: int = 40
    batch_size: int = 32
    learning_rate: float = 4e-3
    warmup_steps: int = 16
    total_epochs: int = 8
    slot_epochs: int = 4
    seed: int = 1234
    checkpoint: Path = Path("feeder.pt")


class LoadForecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.encoder = nn.GRU(3, cfg.hidden, batch_first=True)
        self.readout = nn.Sequential(nn.Linear(cfg.hidden, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.horizon))

    def forward(self, window):
        _, last = self.encoder(window)
        return self.readout(last[-1])


def feeder_series(num_hours: int, rng: np.random.Generator) -> np.ndarray:
    hours = np.arange(num_hours)
    temperature = np.convolve(rng.normal(size=num_hours + 23), np.ones(24) / 5.0, mode="valid")
    load = np.sin(2 * np.pi * hours / 24) + 0.5 * np.sin(2 * np.pi * hours / 168) + 0.4 * temperature
    load = load + 0.08 * rng.normal(size=num_hours)
    return np.stack([load, temperature, np.cos(2 * np.pi * hours / 24)], axis=1).astype(np.float32)


def windows(series: np.ndarray, cfg: Config) -> TensorDataset:
    mean, std = series.mean(axis=0), series.std(axis=0)
    series = (series - mean) / std
    starts = range(0, len(series) - cfg.history - cfg.horizon, 2)
    inputs = np.stack([series[s : s + cfg.history] for s in starts])
    targets = np.stack([series[s + cfg.history : s + cfg.history + cfg.horizon, 0] for s in starts])
    return TensorDataset(torch.from_numpy(inputs), torch.from_numpy(targets))


class Trainer:
    def __init__(self, cfg: Config, data: TensorDataset):
        self.cfg = cfg
        self.shuffler = torch.Generator().manual_seed(cfg.seed)
        self.loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=True, generator=self.shuffler)
        self.model = LoadForecaster(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.learning_rate)
        total_steps = cfg.total_epochs * len(self.loader)
        self.scheduler = LambdaLR(self.optimizer, lambda step: self.factor(step, total_steps))
        self.epoch = 0

    def factor(self, step: int, total_steps: int) -> float:
        if step < self.cfg.warmup_steps:
            return (step + 1) / self.cfg.warmup_steps
        progress = (step - self.cfg.warmup_steps) / max(1, total_steps - self.cfg.warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epoch": self.epoch,
            "rng": torch.get_rng_state(),
            "shuffler": self.shuffler.get_state(),
        }
        torch.save(state, self.cfg.checkpoint)

    def restore(self) -> None:
        state = torch.load(self.cfg.checkpoint)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        torch.set_rng_state(state["rng"])
        self.shuffler.set_state(state["shuffler"])

    def fit(self, until_epoch: int) -> None:
        self.model.train()
        while self.epoch < until_epoch:
            running = 0.0
            for window, target in self.loader:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(window), target)
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                running += loss.item()
            self.epoch += 1
            rate = self.scheduler.get_last_lr()[0]
            print(f"epoch {self.epoch} loss {running / len(self.loader):.4f} lr {rate:.5f}")
            self.save()


def main() -> None:
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    data = windows(feeder_series(1000, np.random.default_rng(cfg.seed)), cfg)

    first = Trainer(cfg, data)
    first.fit(cfg.slot_epochs)

    second = Trainer(cfg, data)
    second.restore()
    second.fit(cfg.total_epochs)


if __name__ == "__main__":
    main()
