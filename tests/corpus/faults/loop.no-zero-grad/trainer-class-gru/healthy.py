"""Adding two marked numbers in a sequence with a GRU; training logic lives in a Trainer object."""
from __future__ import annotations

import random
from typing import Iterator

import torch
from torch import Tensor, nn


class AddingProblem:
    """Rows of (value, marker); the target is the sum of the two marked values."""

    def __init__(self, size: int, length: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        values = torch.randn(size, length, generator=g)
        marks = torch.zeros(size, length)
        for row in range(size):
            where = torch.randperm(length, generator=g)[:2]
            marks[row, where] = 1.0
        self.inputs = torch.stack([values, marks], dim=-1)
        self.targets = (values * marks).sum(dim=1)

    def batches(self, batch_size: int, shuffle: bool) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.targets)) if shuffle else torch.arange(len(self.targets))
        for chunk in order.split(batch_size):
            yield self.inputs[chunk], self.targets[chunk]


class Adder(nn.Module):
    def __init__(self, hidden: int = 32):
        super().__init__()
        self.rnn = nn.GRU(input_size=2, hidden_size=hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, last = self.rnn(x)
        return self.linear(self.norm(last[-1])).squeeze(-1)


class Trainer:
    def __init__(self, model: nn.Module, train_data: AddingProblem, valid_data: AddingProblem, lr: float):
        self.model = model
        self.train_data = train_data
        self.valid_data = valid_data
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.SmoothL1Loss()
        self.global_step = 0

    def train_step(self, x: Tensor, y: Tensor) -> float:
        self.model.train()
        self.optimizer.zero_grad()
        prediction = self.model(x)
        loss = self.criterion(prediction, y)
        loss.backward()
        self.optimizer.step()
        self.global_step += 1
        return loss.item()

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        total, count = 0.0, 0
        for x, y in self.valid_data.batches(64, shuffle=False):
            total += self.criterion(self.model(x), y).item() * len(y)
            count += len(y)
        return total / count

    def fit(self, epochs: int, batch_size: int) -> None:
        for epoch in range(epochs):
            losses = [self.train_step(x, y) for x, y in self.train_data.batches(batch_size, shuffle=True)]
            print(
                f"epoch {epoch + 1:2d} | step {self.global_step:4d} | "
                f"train {sum(losses) / len(losses):.4f} | valid {self.validate():.4f}"
            )


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    train_data = AddingProblem(1280, length=8, seed=1)
    valid_data = AddingProblem(256, length=8, seed=2)
    trainer = Trainer(Adder(), train_data, valid_data, lr=6e-3)
    trainer.fit(epochs=5, batch_size=64)


if __name__ == "__main__":
    main()
