"""Energy demand from weather, with inputs standardised by statistics that the network keeps itself."""
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import distributed, nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class Settings:
    seed: int = 11
    hours: int = 1600
    batch: int = 20
    epochs: int = 4
    width: int = 40
    rate: float = 3e-3


class Weather(Dataset):
    """Rows are ordered by the year, as they were measured."""

    def __init__(self, hours, seed):
        rng = np.random.default_rng(seed)
        season = np.sin(np.linspace(0, 2 * np.pi, hours))
        temperature = 1.2 * season + 0.5 * rng.standard_normal(hours)
        wind = np.abs(rng.standard_normal(hours)) - 0.8
        hour = rng.uniform(-1, 1, hours)
        self.x = torch.from_numpy(np.stack([temperature, wind, hour], 1)).float()
        demand = np.tanh(-temperature) + 0.4 * wind * hour + 0.05 * rng.standard_normal(hours)
        self.y = torch.from_numpy(demand).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, row):
        return {"weather": self.x[row], "demand": self.y[row]}


class RunningScale(nn.Module):
    def __init__(self, size, pace=0.05):
        super().__init__()
        self.pace = pace
        self.register_buffer("center", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.center.lerp_(x.mean(0), self.pace)
                self.spread.lerp_((x - self.center).square().mean(0), self.pace)
        return (x - self.center) / (self.spread.sqrt() + 1e-3)


class Demand(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = RunningScale(3)
        self.body = nn.Sequential(nn.Linear(3, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, weather):
        return self.body(self.scale(weather)).squeeze(-1)


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.rank = distributed.get_rank()
        random.seed(settings.seed)
        np.random.seed(settings.seed)
        torch.manual_seed(settings.seed)
        self.net = DistributedDataParallel(Demand(settings.width))
        self.optimizer = optim.AdamW(self.net.parameters(), lr=settings.rate, weight_decay=0.0)
        self.sampler = DistributedSampler(Weather(settings.hours, 1), shuffle=True, seed=settings.seed)
        self.batches = DataLoader(self.sampler.dataset, settings.batch, sampler=self.sampler)
        self.check = next(iter(DataLoader(Weather(200, 2), 200)))

    def fit(self):
        for epoch in range(self.settings.epochs):
            self.sampler.set_epoch(epoch)
            losses = [self.update(batch) for batch in self.batches]
            if self.rank == 0:
                print(f"{epoch} train {sum(losses) / len(losses):.4f} held out {self.validate():.4f}", flush=True)

    def update(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.net(batch["weather"]), batch["demand"])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        error = nn.functional.mse_loss(self.net.module(self.check["weather"]), self.check["demand"]).item()
        self.net.train()
        return error


if __name__ == "__main__":
    distributed.init_process_group(backend="gloo")
    Trainer(Settings()).fit()
    distributed.destroy_process_group()
