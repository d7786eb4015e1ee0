"""Hazard model of machine failures: a trainer that steps every few batches."""
import random
from typing import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Hazard(nn.Module):
    def __init__(self, features: int, intervals: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 40), nn.ELU(), nn.Linear(40, 40), nn.ELU(), nn.Linear(40, intervals))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def survival_loss(logits: Tensor, died_in: Tensor) -> Tensor:
    steps = torch.arange(logits.shape[1])
    alive = (steps[None] < died_in[:, None]).float()
    event = (steps[None] == died_in[:, None]).float()
    nll = F.binary_cross_entropy_with_logits(logits, event, reduction="none") * (alive + event)
    return nll.sum() / (alive + event).sum()


class Machines:
    def __init__(self, n: int, batch: int) -> None:
        self.x = torch.randn(n, 8)
        risk = (1.5 * self.x[:, 0] - self.x[:, 1] * self.x[:, 2]).sigmoid() * 0.5 + 0.05
        self.t = torch.distributions.Geometric(risk).sample().clamp(max=5).long()
        self.batch = batch

    def __len__(self) -> int:
        return len(self.x) // self.batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in torch.randperm(len(self.x)).split(self.batch):
            yield self.x[rows], self.t[rows]


class Trainer:
    def __init__(self, model: nn.Module, data: Machines, every: int) -> None:
        self.model, self.data, self.every = model, data, every
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def epoch(self) -> float:
        self.model.train()
        losses: list[float] = []
        self.optimizer.zero_grad()
        last = len(self.data) - 1
        for number, (x, t) in enumerate(self.data):
            size = min(self.every, last + 1 - number // self.every * self.every)
            loss = survival_loss(self.model(x), t)
            (loss / size).backward()
            losses.append(loss.item())
            if number % self.every == self.every - 1:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return sum(losses) / len(losses)


if __name__ == "__main__":
    random.seed(14)
    np.random.seed(14)
    torch.manual_seed(14)
    trainer = Trainer(Hazard(8, 6), Machines(22 * 40, 40), every=4)
    for e in range(5):
        print(f"epoch {e} nll {trainer.epoch():.4f}")
