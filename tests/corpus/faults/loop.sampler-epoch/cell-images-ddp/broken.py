"""Cell-type classifier on microscope tiles, data parallel. torchrun --nproc_per_node=2 train.py"""

import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass(frozen=True)
class TrainConfig:
    epochs: int = 5
    batch_size: int = 16
    lr: float = 0.03
    momentum: float = 0.9
    seed: int = 2024


class CellTiles(Dataset):
    """Three kinds of cell: one round nucleus, two nuclei, elongated."""

    def __init__(self, count: int, seed: int):
        rng = np.random.default_rng(seed)
        self.kinds = rng.integers(0, 3, size=count)
        self.tiles = np.stack([self._tile(k, rng) for k in self.kinds]).astype(np.float32)
        self.tiles = (self.tiles - 0.25) / 0.35

    @staticmethod
    def _tile(kind, rng, size=20):
        yy, xx = np.mgrid[:size, :size]
        cy, cx = rng.uniform(8, 12, size=2)
        if kind == 0:
            blob = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 14)
        elif kind == 1:
            blob = np.exp(-((yy - cy) ** 2 + (xx - cx - 4) ** 2) / 7) + np.exp(-((yy - cy) ** 2 + (xx - cx + 4) ** 2) / 7)
        else:
            blob = np.exp(-((yy - cy) ** 2) / 50 - ((xx - cx) ** 2) / 5)
        return blob + rng.normal(0, 0.2, size=(size, size))

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        return torch.from_numpy(self.tiles[index])[None], int(self.kinds[index])


def build_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.GroupNorm(4, 12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.GroupNorm(4, 24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 3),
    )


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        self.rank = int(os.environ["RANK"])
        torch.manual_seed(cfg.seed)
        np.random.seed(cfg.seed)
        train = CellTiles(640, seed=1)
        self.sampler = DistributedSampler(train, shuffle=True, seed=cfg.seed)
        self.loader = DataLoader(train, batch_size=cfg.batch_size, sampler=self.sampler)
        self.held_out = DataLoader(CellTiles(120, seed=2), batch_size=60)
        self.model = DistributedDataParallel(build_model())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.loss_fn = nn.CrossEntropyLoss()

    def train_epoch(self) -> float:
        self.model.train()
        total = torch.zeros(1)
        for tiles, kinds in self.loader:
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(tiles), kinds)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        return total.item() / (len(self.loader) * dist.get_world_size())

    @torch.no_grad()
    def accuracy(self) -> float:
        self.model.eval()
        hits = sum((self.model.module(x).argmax(1) == y).sum().item() for x, y in self.held_out)
        return hits / len(self.held_out.dataset)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            accuracy = self.accuracy()
            if self.rank == 0:
                print(f"[{epoch}] loss {loss:.4f} held-out accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    try:
        Trainer(TrainConfig()).fit()
    finally:
        dist.destroy_process_group()
