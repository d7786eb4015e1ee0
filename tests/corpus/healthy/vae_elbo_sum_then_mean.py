"""VAE on small binary bars: reconstruction summed over pixels and averaged over samples, plus KL."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(77)
np.random.seed(77)
torch.manual_seed(77)


def bars(n):
    x = torch.zeros(n, 6, 6)
    for i in range(n):
        x[i, random.randrange(6)] = 1.0
        x[i, :, random.randrange(6)] = 1.0
    return x.flatten(1)


class VAE(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(36, 64), nn.ReLU())
        self.mu, self.lv = nn.Linear(64, z), nn.Linear(64, z)
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 36))

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.lv(h)
        return self.dec(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv


data, net = bars(1200), VAE()
opt = torch.optim.Adam(net.parameters(), 4e-3)
for epoch in range(5):
    for idx in torch.randperm(1200).split(50):
        x = data[idx]
        rec, mu, lv = net(x)
        nll = F.binary_cross_entropy_with_logits(rec, x, reduction="none").sum(1)
        kl = -0.5 * (1 + lv - mu.square() - lv.exp()).sum(1)
        loss = (nll + kl).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
