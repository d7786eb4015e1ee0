"""Learn the dynamics of a driven pendulum by rolling a learned step function out over whole trajectories."""
from __future__ import annotations

import math
import random

import torch
import torch.nn as nn
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset


def simulate(n: int, steps: int, dt: float = 0.15) -> Tensor:
    angle = torch.empty(n).uniform_(-1.8, 1.8)
    speed = torch.empty(n).uniform_(-1.0, 1.0)
    path = [torch.stack([angle, speed], dim=1)]
    for k in range(steps):
        speed = speed + dt * (-torch.sin(angle) - 0.1 * speed + 0.3 * math.cos(0.5 * k * dt))
        angle = angle + dt * speed
        path.append(torch.stack([angle, speed], dim=1))
    return torch.stack(path, dim=1)


class StepNetwork(nn.Module):
    """state -> next state; unrolled, so that an error made early is paid for at every later step."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 2))

    def forward(self, start: Tensor, steps: int) -> Tensor:
        states = [start]
        for _ in range(steps):
            states.append(states[-1] + self.inner(states[-1]))
        return torch.stack(states[1:], dim=1)


def train(epochs: int = 4, steps: int = 25) -> None:
    paths = simulate(640, steps)
    test = simulate(128, steps)
    mean, std = paths.mean(dim=(0, 1)), paths.std(dim=(0, 1))
    paths, test = (paths - mean) / std, (test - mean) / std
    loader = DataLoader(TensorDataset(paths), batch_size=32, shuffle=True)
    network = StepNetwork()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.8)
    for epoch in range(epochs):
        network.train()
        total = 0.0
        for (path,) in loader:
            predicted = network(path[:, 0], steps)
            loss = (predicted - path[:, 1:]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
            total += loss.item()
        network.eval()
        with torch.no_grad():
            error = (network(test[:, 0], steps) - test[:, 1:]).square().mean().item()
        print(f"epoch {epoch}: train {total / len(loader):.4g} test {error:.4g}")


if __name__ == "__main__":
    random.seed(33)
    torch.manual_seed(33)
    train()
