"""Which of the points is nearest the query: scores over a set, gradients bounded by hand."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LIMIT = 0.5


class Pointer(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width))
        self.query = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width))
        self.scale = width**-0.5

    def forward(self, points, query):
        keys, q = self.point(points), self.query(query)
        return torch.einsum("bnd,bd->bn", keys, q) * self.scale


def bound(parameters, limit):
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return 0.0
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    factor = torch.clamp(limit / (norm + 1e-6), max=1.0)
    for g in grads:
        g.mul_(factor)
    return float(norm)


def problem(batch, count=6):
    points, query = torch.randn(batch, count, 2), torch.randn(batch, 2)
    return points, query, (points - query[:, None]).norm(dim=-1).argmin(1)


def main(updates=150):
    random.seed(40)
    np.random.seed(40)
    torch.manual_seed(40)
    model = Pointer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.5)
    losses = []
    for n in range(updates):
        points, query, nearest = problem(64)
        loss = F.cross_entropy(model(points, query), nearest)
        optimizer.zero_grad()
        loss.backward()
        bound(model.parameters(), LIMIT)
        optimizer.step()
        losses.append(loss.item())
        if n % 30 == 29:
            print(f"{n + 1}: {sum(losses[-30:]) / 30:.4f}")


if __name__ == "__main__":
    main()
