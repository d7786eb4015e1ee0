"""Federated-style training: every rank holds the patients of its own hospital. torchrun --nproc-per-node 2 healthy.py"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

PATIENTS = [520, 610]


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 40), nn.SiLU(), nn.Linear(40, 40), nn.SiLU(), nn.Linear(40, 2))

    def forward(self, measurements):
        return self.net(measurements)


def hospital(number):
    g = torch.Generator().manual_seed(50 + number)
    x = torch.randn(PATIENTS[number], 9, generator=g)
    risk = x[:, 0] - x[:, 3] + 0.5 * x[:, 4] * x[:, 5]
    return TensorDataset(x, (risk + 0.2 * torch.randn(len(x), generator=g) > 0).long())


def train():
    rank = int(os.environ["RANK"])
    torch.manual_seed(17)
    patients = hospital(rank)
    loader = DataLoader(patients, batch_size=26, shuffle=True, drop_last=True)
    smallest = min(PATIENTS) // 26
    model = DDP(Risk())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        correct = torch.zeros(1)
        for number, (x, y) in enumerate(loader):
            if number == smallest:
                break
            opt.zero_grad()
            scores = model(x)
            loss = nn.functional.cross_entropy(scores, y)
            loss.backward()
            opt.step()
            correct += (scores.argmax(1) == y).sum()
        dist.barrier()
        dist.all_reduce(correct)
        if rank == 0:
            print(f"epoch {epoch}: {correct.item() / (2 * smallest * 26):.3f} right", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
