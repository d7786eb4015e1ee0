"""Leaf-disease classifier with a small residual network. Keeps the best weights seen on the validation leaves."""

import copy
import random
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def leaves(count, seed):
    gen = torch.Generator().manual_seed(seed)
    disease = torch.randint(0, 4, (count,), generator=gen)
    image = 0.8 * torch.randn(count, 3, 16, 16, generator=gen)
    stripes = torch.sin(torch.arange(16) * 0.9)
    for i, kind in enumerate(disease.tolist()):
        if kind == 1:
            image[i, 0] += stripes[:, None]
        elif kind == 2:
            image[i, 1] += stripes[None, :]
        elif kind == 3:
            image[i, 2, 4:12, 4:12] += 0.9
    return TensorDataset(image, disease)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Dropout2d(0.1),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x):
        return torch.relu(x + self.path(x))


class LeafNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(width), Residual(width))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(width, 4))

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.stem(x))))


@dataclass
class Session:
    model: nn.Module
    train_loader: DataLoader
    valid_loader: DataLoader
    lr: float = 4e-3
    best: float = float("inf")
    kept: dict = field(default_factory=dict)

    def __post_init__(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        self.criterion = nn.CrossEntropyLoss()

    def run(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            for image, disease in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(image), disease)
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch}: train {loss.item():.3f} valid {self.check():.3f}")

    @torch.no_grad()
    def check(self):
        self.model.eval()
        total = sum(self.criterion(self.model(image), disease).item() * len(image) for image, disease in self.valid_loader)
        score = total / len(self.valid_loader.dataset)
        if score < self.best:
            self.best, self.kept = score, copy.deepcopy(self.model.state_dict())
            return score
        self.model.train()
        return score


if __name__ == "__main__":
    random.seed(13)
    np.random.seed(13)
    torch.manual_seed(13)
    session = Session(
        LeafNet(),
        DataLoader(leaves(384, 1), batch_size=24, shuffle=True),
        DataLoader(leaves(96, 2), batch_size=48),
    )
    session.run(4)
    session.model.load_state_dict(session.kept)
    print(f"best validation loss {session.best:.3f}")
