"""Wind farm power forecast, data parallel. Launch: torchrun --nproc-per-node 2 train.py"""
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class TurbineWindows(Dataset):
    def __init__(self, hours=3000, window=24, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)
        wind = 8 + 3 * np.sin(2 * np.pi * t / 24) + np.cumsum(rng.normal(0, 0.15, hours))
        wind = np.abs(wind - np.linspace(0, wind[-1] - wind[0], hours))
        direction = np.cumsum(rng.normal(0, 0.1, hours))
        power = np.clip((wind / 12) ** 3, 0, 1) + 0.03 * rng.normal(0, 1, hours)
        table = np.stack([wind, np.sin(direction), np.cos(direction), power], 1)
        table = (table - table.mean(0)) / table.std(0)
        self.table = torch.tensor(table, dtype=torch.float32)
        self.window = window

    def __len__(self):
        return len(self.table) - self.window

    def __getitem__(self, i):
        return self.table[i:i + self.window], self.table[i + self.window, 3]


class Forecaster(nn.Module):
    def __init__(self, n_features=4, hidden=32):
        super().__init__()
        self.gru = nn.GRU(n_features, hidden, batch_first=True)
        self.fc = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(out[:, -1]).squeeze(-1)


def get_dist_info():
    rank = int(os.environ.get("RANK", 0))
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    return rank, world_size


def main():
    rank, world_size = get_dist_info()
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    np.random.seed(42)
    random.seed(42)

    dataset = TurbineWindows()
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=42)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, drop_last=True)

    model = DDP(Forecaster())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.MSELoss()

    for epoch in range(2):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(1)
        for history, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(history), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: mse {total.item() / len(loader) / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
