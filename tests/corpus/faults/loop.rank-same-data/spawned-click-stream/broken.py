"""Click-through model over a stream of impressions; one process per core."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

USERS, ITEMS = 24, 16


class Impressions(IterableDataset):
    """Replays one day of impressions in the order in which they were logged."""

    def __init__(self, day, count, rank, world):
        self.day, self.count = day, count
        self.rank, self.world = rank, world
        taste = torch.Generator().manual_seed(99)
        self.user_taste = torch.randn(USERS, 3, generator=taste)
        self.item_taste = torch.randn(ITEMS, 3, generator=taste)

    def log(self):
        draw = torch.Generator().manual_seed(self.day)
        for _ in range(self.count):
            user = int(torch.randint(USERS, (), generator=draw))
            item = int(torch.randint(ITEMS, (), generator=draw))
            affinity = float(self.user_taste[user] @ self.item_taste[item])
            clicked = float(torch.rand((), generator=draw) < torch.sigmoid(torch.tensor(3.0 * affinity)))
            yield user, item, clicked

    def __iter__(self):
        yield from self.log()


class TwoTower(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.user = nn.Embedding(USERS, width)
        self.item = nn.Embedding(ITEMS, width)
        self.mix = nn.Sequential(nn.Linear(3 * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, item):
        u, i = self.user(user), self.item(item)
        return self.mix(torch.cat([u, i, u * i], dim=-1)).squeeze(-1)


def work(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DistributedDataParallel(TwoTower())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    criterion = nn.BCEWithLogitsLoss()
    for day in range(4):
        loader = DataLoader(Impressions(day, 1280, rank, world), batch_size=32)
        losses = []
        for user, item, clicked in loader:
            optimizer.zero_grad()
            loss = criterion(model(user, item), clicked.float())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if rank == 0:
            print(f"day {day} log loss {sum(losses) / len(losses):.4f}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(work, args=(2, free_port()), nprocs=2, join=True)
