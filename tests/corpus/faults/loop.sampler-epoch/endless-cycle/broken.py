"""Trains a handwriting-like stroke classifier for a fixed number of steps. torchrun --nproc-per-node 2 train.py"""
import dataclasses
import math
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclasses.dataclass
class Config:
    steps: int = 84
    batch_size: int = 16
    num_samples: int = 448
    lr: float = 1e-2
    clip: float = 1.0
    seed: int = 2024


class Strokes(Dataset):
    def __init__(self, num, seed):
        g = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, 4, (num,), generator=g)
        phase = torch.rand(num, 1, generator=g) * 2 * math.pi
        t = torch.linspace(0, 2 * math.pi, 24).expand(num, 24)
        turns = torch.tensor([0.5, 1.0, 2.0, 4.0])[self.kind].unsqueeze(1)
        points = torch.stack([torch.cos(turns * t + phase), torch.sin(turns * t + phase)], dim=-1)
        self.points = points + 0.2 * torch.randn(points.shape, generator=g)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, index):
        return self.points[index], self.kind[index]


class StrokeNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, points):
        states, _ = self.gru(points)
        return self.head(states.amax(dim=1))


def cycle(loader, sampler):
    passes = 0
    while True:
        yield from loader
        passes += 1


def main(cfg):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(cfg.seed)
    dataset = Strokes(cfg.num_samples, seed=1)
    sampler = DistributedSampler(dataset, shuffle=True, seed=cfg.seed, drop_last=True)
    loader = DataLoader(dataset, batch_size=cfg.batch_size, sampler=sampler, drop_last=True)
    stream = cycle(loader, sampler)
    model = nn.parallel.DistributedDataParallel(StrokeNet())
    optimizer = optim.Adam(model.parameters(), lr=cfg.lr)
    average = None
    for step in range(cfg.steps):
        points, kind = next(stream)
        loss = F.cross_entropy(model(points), kind)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        optimizer.step()
        average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
        if rank == 0 and (step + 1) % 14 == 0:
            print(f"[{step + 1:4d}/{cfg.steps}] loss {average:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Config())
