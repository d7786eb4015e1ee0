# Tabular churn model, trained on two processes.
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = int(os.environ.get("EPOCHS", 2))
GLOBAL_BATCH = 64


def customers(count, generator):
    x = torch.randn(count, 10, generator=generator)
    score = x[:, 0] - 0.7 * x[:, 1] + x[:, 2] * x[:, 3]
    y = (score + 0.3 * torch.randn(count, generator=generator) > 0).float()
    return TensorDataset(x, y)


def run():
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    torch.manual_seed(21)
    net = nn.Sequential(
        nn.Linear(10, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, 24),
        nn.BatchNorm1d(24),
        nn.ReLU(),
        nn.Linear(24, 1),
    )
    model = nn.parallel.DistributedDataParallel(net)
    generator = torch.Generator().manual_seed(4)
    train, held_out = customers(640, generator), customers(400, generator)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    loader = DataLoader(train, batch_size=GLOBAL_BATCH // world, sampler=sampler, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS * 2):
        sampler.set_epoch(epoch)
        total, seen = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            total, seen = total + loss.item(), seen + 1
        model.eval()
        with torch.no_grad():
            x, y = held_out.tensors
            hit = ((net(x).squeeze(1) > 0) == (y > 0.5)).float().mean()
        model.train()
        if rank == 0:
            print(f"epoch {epoch} loss {total / seen:.3f} accuracy {hit:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
