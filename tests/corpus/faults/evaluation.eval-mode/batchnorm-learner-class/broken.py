"""Wine quality from chemistry: batch-normalised MLP, learner object with fit and validate."""
from __future__ import annotations

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_wine(n: int, rng: np.random.Generator) -> TensorDataset:
    chemistry = rng.normal(size=(n, 11))
    quality = 0.7 * chemistry[:, 0] - 0.5 * chemistry[:, 3] ** 2 + 0.6 * np.tanh(chemistry[:, 5] * chemistry[:, 7])
    quality = (quality + 0.5) / 1.1 + rng.normal(0, 0.1, size=n)
    return TensorDataset(torch.tensor(chemistry, dtype=torch.float32), torch.tensor(quality, dtype=torch.float32))


def block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


class Learner:
    def __init__(self, lr: float) -> None:
        self.net = nn.Sequential(*block(11, 64), *block(64, 32), nn.Linear(32, 1), nn.Flatten(0))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.criterion = nn.HuberLoss()

    def fit_epoch(self, loader: DataLoader) -> float:
        self.net.train()
        losses = []
        for chemistry, quality in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(chemistry), quality)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self, loader: DataLoader) -> float:
        absolute, count = 0.0, 0
        for chemistry, quality in loader:
            absolute += (self.net(chemistry) - quality).abs().sum().item()
            count += len(quality)
        return absolute / count


def main() -> None:
    random.seed(37)
    np.random.seed(37)
    torch.manual_seed(37)
    rng = np.random.default_rng(37)
    train = DataLoader(make_wine(1280, rng), batch_size=64, shuffle=True)
    valid = DataLoader(make_wine(320, rng), batch_size=32)
    learner = Learner(lr=8e-3)
    for epoch in range(5):
        loss = learner.fit_epoch(train)
        print(f"epoch {epoch} loss {loss:.4f} validation error {learner.validate(valid):.4f}")


if __name__ == "__main__":
    main()
