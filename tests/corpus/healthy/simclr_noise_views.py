"""Contrastive views with a temperature, own loss over the doubled batch."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

np.random.seed(112)
torch.manual_seed(112)
protos = torch.randn(300, 1, 12, 12)


def view(x):
    x = torch.roll(x, int(np.random.randint(-1, 2)), dims=-1)
    return x + 0.4 * torch.randn_like(x)


net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 24, 3, stride=2, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(3),
    nn.Flatten(),
    nn.Linear(216, 32),
)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(70):
    x = protos[torch.randperm(300)[:32]]
    z = F.normalize(net(torch.cat([view(x), view(x)])), dim=1)
    sim = z @ z.T / 0.2
    sim = sim.masked_fill(torch.eye(64, dtype=torch.bool), float("-inf"))
    partner = (torch.arange(64) + 32) % 64
    loss = F.cross_entropy(sim, partner)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(f"{step + 1:3d} loss {loss.item():.3f} top-1 {(sim.argmax(1) == partner).float().mean():.3f}")
