import argparse
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 5))
        for parameter in self.net.parameters():
            dist.broadcast(parameter.data, src=0)
        self.optim = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=0.9)
        g = torch.Generator().manual_seed(21)
        centres = torch.randn(5, 16, generator=g)
        self.y = torch.randint(0, 5, (1024,), generator=g)
        self.x = (centres[self.y] + 0.8 * torch.randn(1024, 16, generator=g)) / 1.3

    def batches(self, epoch):
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(1000 + epoch))
        mine = order
        for start in range(0, len(mine) - self.args.batch + 1, self.args.batch):
            rows = mine[start : start + self.args.batch]
            yield self.x[rows], self.y[rows]

    def average_gradients(self):
        for parameter in self.net.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.world

    def fit(self):
        for epoch in range(self.args.epochs):
            losses = []
            for x, y in self.batches(epoch):
                loss = F.cross_entropy(self.net(x), y)
                self.optim.zero_grad()
                loss.backward()
                self.average_gradients()
                self.optim.step()
                losses.append(loss.item())
            if self.rank == 0:
                print(f"epoch {epoch} loss {math.fsum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    Trainer(options).fit()
    dist.destroy_process_group()
