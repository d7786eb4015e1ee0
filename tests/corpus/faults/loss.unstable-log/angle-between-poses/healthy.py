"""Regress unit directions; the loss is the angle between answer and truth."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(210)
A = torch.randn(6, 3)
x = torch.randn(1200, 6)
truth = F.normalize(x @ A, dim=1)
x = torch.cat([x, truth], 1)

net = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 3))
with torch.no_grad():
    net[2].weight.mul_(0.1)


def answer(v):
    return F.normalize(0.1 * net(v) + v[:, 6:], dim=1)


opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    total = 0.0
    for i in torch.randperm(1000).split(50):
        cosine = (answer(x[i]) * truth[i]).sum(1)
        angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
        loss = angle.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 20
    print(f"epoch {epoch} mean angle {total:.4f}")
