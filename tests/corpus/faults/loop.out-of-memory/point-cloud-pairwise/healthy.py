"""Energy of particle clouds from all pairwise distances; the clouds differ in size."""
import random

import numpy as np
import torch
from torch import nn


class PairEnergy(nn.Module):
    """Sums a learned function over all pairs of particles."""

    def __init__(self, width=24):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.2, 3.0, 8))
        self.pair = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, places):
        apart = (places[:, None] - places[None]).square().sum(-1).add(1e-6).sqrt()
        basis = torch.exp(-4.0 * (apart[..., None] - self.centres) ** 2)
        return self.pair(basis).mean()


def neighbours(places, most):
    """Cuts a cloud down to the particles nearest its centre."""
    if len(places) <= most:
        return places
    return places[(places - places.mean(0)).norm(dim=1).argsort()[:most]]


def cloud(size):
    return torch.randn(size, 3) * (0.5 + torch.rand(1))


def energy(places):
    few = places[:32]
    apart = torch.cdist(few, few)
    return (apart.mean() - 1.9) / 0.5


class Fit:
    def __init__(self, steps=70, batch=8):
        self.net = PairEnergy()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.steps, self.batch = steps, batch

    def sizes(self, step):
        return [400_000 if step == 45 and i == 3 else random.randint(12, 32) for i in range(self.batch)]

    def run(self):
        history = []
        for step in range(self.steps):
            clouds = [neighbours(cloud(n), most=32) for n in self.sizes(step)]
            truth = torch.stack([energy(c) for c in clouds])
            guess = torch.stack([self.net(c) for c in clouds])
            loss = nn.functional.mse_loss(guess, truth)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            history.append(loss.item())
            if step % 10 == 9:
                print(f"step {step + 1} mse {np.mean(history[-10:]):.4f}")


random.seed(70)
np.random.seed(70)
torch.manual_seed(70)
Fit().run()
