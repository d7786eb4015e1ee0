"""Rainfall categories from station readings, DDP with optimizer state spread over the ranks."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, STATIONS, CATEGORIES = 6, 18, 4


def readings(seed, count):
    maker = torch.Generator().manual_seed(seed)
    rule = torch.randn(STATIONS, CATEGORIES, generator=torch.Generator().manual_seed(3))
    x = torch.randn(count, STATIONS, generator=maker)
    noise = 0.5 * torch.randn(count, CATEGORIES, generator=maker)
    return TensorDataset(x, (x @ rule + noise).argmax(1))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(11)
    net = nn.Sequential(nn.Linear(STATIONS, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, CATEGORIES))
    model = DistributedDataParallel(net)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=3e-3)
    train, held_out = readings(1, 960), readings(2, 256)
    sampler = DistributedSampler(train, shuffle=True, seed=5)
    loader = DataLoader(train, batch_size=32, sampler=sampler)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x, y = held_out.tensors
            right = (net(x).argmax(1) == y).float().mean()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, held out {right.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
