"""Two towers trained with a contrastive loss: readings of one sensor matched to readings of another."""
import itertools
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def seed_all(n):
    random.seed(n)
    np.random.seed(n)
    torch.manual_seed(n)


class Tower(nn.Module):
    def __init__(self, width_in, width=48, dropout=0.1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width_in, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width), nn.GELU())

    def forward(self, x):
        return self.body(x)


class Matcher(nn.Module):
    def __init__(self, left_in, right_in, width=48, out=16):
        super().__init__()
        self.left = Tower(left_in, width)
        self.right = Tower(right_in, width)
        self.left_projection = nn.Linear(width, out)
        self.right_projection = nn.Linear(width, out)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(8.0)))

    def forward(self, a, b):
        za = F.normalize(self.left_projection(self.left(a)), dim=-1)
        zb = F.normalize(self.right_projection(self.right(b)), dim=-1)
        return self.log_temperature.exp() * za @ zb.t()


def pairs(n):
    cause = torch.randn(n, 6)
    mix_a, mix_b = torch.randn(6, 20) / 6**0.5, torch.randn(6, 14) / 6**0.5
    return torch.tanh(cause @ mix_a) + 0.05 * torch.randn(n, 20), torch.tanh(cause @ mix_b) + 0.05 * torch.randn(n, 14)


def symmetric_loss(scores):
    target = torch.arange(len(scores))
    return 0.5 * (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target))


def main():
    seed_all(77)
    a, b = pairs(1600)
    a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    model = Matcher(20, 14)
    parameters = itertools.chain(
        model.left.parameters(),
        model.right.parameters(),
        model.left_projection.parameters(),
        [model.log_temperature],
    )
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    for epoch in range(4):
        model.train()
        seen = []
        for rows in torch.randperm(1536).split(64):
            optimizer.zero_grad()
            loss = symmetric_loss(model(a[rows], b[rows]))
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        model.eval()
        with torch.no_grad():
            scores = model(a[1536:], b[1536:])
            hits = (scores.argmax(1) == torch.arange(64)).float().mean()
        print(f"epoch {epoch}: loss {sum(seen) / len(seen):.3f} recall@1 {hits:.2f}")


main()
