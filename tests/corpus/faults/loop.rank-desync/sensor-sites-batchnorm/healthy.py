"""Vibration class from two sensor sites, one rank per site. Each site keeps its own recordings."""
import argparse

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def recordings(site, count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, count)
    time = np.arange(64) / 64
    frequency = np.array([3.0, 6.0, 11.0])[kind]
    wave = np.sin(2 * np.pi * (frequency[:, None] * time + rng.random((count, 1))))
    wave = wave * rng.uniform(0.8, 1.2, (count, 1)) + rng.normal(0, 0.35, (count, 64))
    wave = (wave - 0.1 * site) / (0.9 + 0.1 * site)
    return torch.from_numpy(wave).float().unsqueeze(1), torch.from_numpy(kind)


def block(inside, outside):
    return nn.Sequential(nn.Conv1d(inside, outside, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(outside), nn.ReLU())


def build():
    return nn.Sequential(block(1, 12), block(12, 24), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 3))


@torch.no_grad()
def accuracy(model, waves, kinds):
    model.eval()
    hits = (model(waves).argmax(1) == kinds).float().mean()
    model.train()
    return hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=4e-3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = DDP(build())
    torch.manual_seed(100 + rank)
    loader = DataLoader(TensorDataset(*recordings(rank, 384, rank)), batch_size=24, shuffle=True)
    held_out = recordings(rank, 96, 50 + rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        running = 0.0
        for waves, kinds in loader:
            loss = F.cross_entropy(model(waves), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        score = accuracy(model.module, *held_out)
        dist.all_reduce(score)
        if rank == 0:
            print(f"epoch {epoch}: loss {running / len(loader):.3f}, accuracy {score.item() / dist.get_world_size():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
