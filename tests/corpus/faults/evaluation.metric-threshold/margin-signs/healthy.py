# Linear-kernel style classifier with a small hidden layer, trained with a squared hinge on -1/+1 targets.
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

SEED = 21
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


def two_moons(n, noise=0.18):
    theta = torch.rand(n) * np.pi
    upper = torch.rand(n) < 0.5
    x0 = torch.where(upper, torch.cos(theta), 1 - torch.cos(theta)) - 0.5
    x1 = torch.where(upper, torch.sin(theta), 0.5 - torch.sin(theta)) - 0.25
    points = torch.stack([x0, x1], dim=1) + noise * torch.randn(n, 2)
    side = torch.where(upper, 1, -1)
    return points, side


class MarginNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.score = nn.Linear(hidden, 1)

    def forward(self, points):
        return self.score(self.body(points)).squeeze(-1)


def squared_hinge(score, side):
    return torch.clamp(1 - side * score, min=0).pow(2).mean()


points, side = two_moons(900)
train_set, test_set = random_split(TensorDataset(points, side), [700, 200])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)

net = MarginNet()
optim = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=8 * len(train_loader))

for epoch in range(8):
    net.train()
    losses = []
    for batch_points, batch_side in train_loader:
        loss = squared_hinge(net(batch_points), batch_side)
        optim.zero_grad()
        loss.backward()
        optim.step()
        decay.step()
        losses.append(loss.item())

    net.eval()
    right = seen = 0
    with torch.no_grad():
        for batch_points, batch_side in test_loader:
            guess = (net(batch_points) > 0).long() * 2 - 1
            right += int((guess == batch_side).sum())
            seen += len(batch_side)
    print(f"[{epoch}] hinge {np.mean(losses):.4f}  test accuracy {right / seen:.3f}")
