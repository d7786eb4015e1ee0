"""Two heads on one trunk: focal loss written out for a rare event, label smoothing written out for the type; some types unknown."""

import random

import numpy as np
import torch
from torch import nn

random.seed(13)
np.random.seed(13)
torch.manual_seed(13)
W = torch.randn(8, 5)
x = torch.randn(1500, 8)
kind = (x @ W + 0.3 * torch.randn(1500, 5)).argmax(1)
rare = ((x[:, 0] + x[:, 1]) > 0.9).float().unsqueeze(1)
known = torch.rand(1500) < 0.7


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.kind, self.rare = nn.Linear(48, 5), nn.Linear(48, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.rare(h)


def focal(logit, y, gamma=2.0):
    p = torch.sigmoid(logit)
    pt = torch.where(y > 0.5, p, 1 - p)
    ce = nn.functional.binary_cross_entropy_with_logits(logit, y, reduction="none")
    return ((1 - pt) ** gamma * ce).mean()


def smoothed(logits, y, mask, eps=0.1):
    lp = torch.log_softmax(logits, -1)
    c = logits.size(-1)
    q = torch.full_like(lp, eps / c)
    q.scatter_add_(1, y[:, None], torch.full((len(y), 1), 1 - eps))
    per = -(q * lp).sum(-1)
    return (per * mask).sum() / mask.sum().clamp(min=1)


net = Two()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(4):
    for idx in torch.randperm(1200).split(48):
        a, b = net(x[idx])
        loss = smoothed(a, kind[idx], known[idx].float()) + 4 * focal(b, rare[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        a, b = net(x[1200:])
        print(
            epoch,
            loss.item(),
            (a.argmax(1) == kind[1200:]).float().mean().item(),
            ((b > 0) == (rare[1200:] > 0.5)).float().mean().item(),
        )
    net.train()
