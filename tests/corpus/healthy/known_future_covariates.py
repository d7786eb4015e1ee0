"""Demand per hour from a calendar known in advance: bidirectional context over covariates, one value per hour."""

import numpy as np
import torch
from torch import nn

np.random.seed(104)
torch.manual_seed(104)
HOURS = 24


def days(n):
    temp = np.cumsum(np.random.randn(n, HOURS) * 0.3, 1)
    promo = (np.random.rand(n, HOURS) < 0.15).astype("float32")
    hour = np.tile(np.arange(HOURS), (n, 1))
    before = np.pad(promo, ((0, 0), (0, 1)))[:, 1:]
    y = np.sin(2 * np.pi * hour / 24) + 0.5 * temp + promo - 0.6 * before + 0.1 * np.random.randn(n, HOURS)
    x = np.stack([temp, promo, np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24)], -1)
    y = (y - y.mean()) / y.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Demand(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.mix = nn.Conv1d(width, width, 5, padding=2)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 1)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        h = h + torch.relu(self.mix(h.transpose(1, 2))).transpose(1, 2)
        return self.out(self.rnn(h)[0]).squeeze(-1)


x, y = days(700)
net = Demand()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(4):
    net.train()
    for i in torch.randperm(600).split(25):
        loss = nn.functional.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, round(loss.item(), 4), round(nn.functional.mse_loss(net(x[600:]), y[600:]).item(), 4))
