"""Keypoint regression with a loss written by hand and gradients summed over several small batches."""
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Plan:
    accumulate: int = 5
    size: int = 16
    updates: int = 40
    rate: float = 0.012


class Trainer:
    def __init__(self, plan):
        self.plan = plan
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 80), nn.Tanh(), nn.Linear(80, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=plan.rate, momentum=0.9)

    def sample(self):
        where = torch.rand(self.plan.size, 2) * 6 + 1
        y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
        gap = (x - where[:, 0, None, None]) ** 2 + (y - where[:, 1, None, None]) ** 2
        image = torch.exp(-gap / 3) * 3 + 0.05 * torch.randn(self.plan.size, 8, 8)
        return (image - image.mean()) / image.std(), (where - 4) / 1.8

    def micro_loss(self):
        image, target = self.sample()
        return ((self.net(image) - target) ** 2).sum(-1).mean()

    def update(self):
        shown = 0.0
        for _ in range(self.plan.accumulate):
            loss = self.micro_loss()
            shown += loss.item() / self.plan.accumulate
            loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return shown


random.seed(3), np.random.seed(3), torch.manual_seed(3)
trainer = Trainer(Plan())
for i in range(trainer.plan.updates):
    value = trainer.update()
    if i % 6 == 5:
        print(i + 1, round(value, 4))
