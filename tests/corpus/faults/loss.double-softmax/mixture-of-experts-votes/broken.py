"""Leaf classification by a vote of three small networks with a learned gate."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)
K, D = 6, 12
centres = torch.randn(K, 2, D) * 1.3


def leaves(n):
    y = torch.randint(0, K, (n,))
    mode = torch.randint(0, 2, (n,))
    return centres[y, mode] + 0.8 * torch.randn(n, D), y


def voter():
    return nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, K))


class Committee(nn.Module):
    def __init__(self, members=3):
        super().__init__()
        self.members = nn.ModuleList([voter() for _ in range(members)])
        self.gate = nn.Linear(D, members)

    def forward(self, x):
        share = F.softmax(self.gate(x), dim=1)
        votes = torch.stack([F.softmax(m(x), dim=1) for m in self.members], dim=1)
        return (share.unsqueeze(-1) * votes).sum(dim=1)


x, y = leaves(1200)
model = Committee()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(4):
    model.train()
    total, parts = 0.0, torch.randperm(1000).split(40)
    for idx in parts:
        share = model(x[idx])
        loss = F.cross_entropy(share, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(x[1000:]).argmax(1) == y[1000:]).float().mean()
    print(f"epoch {epoch} loss {total / len(parts):.3f} accuracy {acc:.3f}")
