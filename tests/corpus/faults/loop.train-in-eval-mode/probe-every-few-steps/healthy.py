"""Dropout classifier of sensor patterns with a quick look at held-out accuracy every few steps."""
import random

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(20, 96), nn.Linear(96, 96), nn.Linear(96, 5)
        self.norm, self.drop = nn.BatchNorm1d(96), nn.Dropout(0.2)

    def forward(self, x):
        h = self.drop(torch.relu(self.norm(self.a(x))))
        return self.c(self.drop(torch.relu(self.b(h))))


class Session:
    def __init__(self, seed=11):
        random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
        centres = torch.randn(5, 20)
        self.y = torch.randint(0, 5, (1700,))
        self.x = (centres[self.y] + 1.2 * torch.randn(1700, 20)) / 1.6
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def probe(self):
        self.net.eval()
        with torch.no_grad():
            right = (self.net(self.x[1500:]).argmax(1) == self.y[1500:]).float().mean().item()
        self.net.train()
        return right

    def run(self, steps=120, every=15):
        self.net.train()
        for i in range(1, steps + 1):
            rows = torch.randint(0, 1500, (48,))
            loss = nn.functional.cross_entropy(self.net(self.x[rows]), self.y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if i % every == 0:
                print(i, round(loss.item(), 4), self.probe())


Session().run()
