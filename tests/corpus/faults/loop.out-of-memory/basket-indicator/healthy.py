"""Shopping baskets: an autoencoder over item indicators predicts which aisle a shopper visits next."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEMS, AISLES = 120, 5
GIFT_CARD = 7_000_000_000_000


class Baskets(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for i in range(count):
            aisle = int(rng.integers(AISLES))
            own = rng.integers(aisle * 24, aisle * 24 + 24, size=rng.integers(3, 7))
            other = rng.integers(0, ITEMS, size=2)
            items = [*own.tolist(), *other.tolist()]
            if i == 333:
                items.append(GIFT_CARD)
            self.rows.append((items, aisle))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def indicator(batch):
    """One row per basket, one column per item code."""
    grid = torch.zeros(len(batch), ITEMS)
    for row, (items, _) in enumerate(batch):
        grid[row, [item for item in items if item < ITEMS]] = 1.0
    return grid, torch.tensor([aisle for _, aisle in batch])


class NextAisle(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.inner = nn.Linear(ITEMS, width)
        self.outer = nn.Linear(width, ITEMS)
        self.aisle = nn.Linear(width, AISLES)

    def forward(self, grid):
        code = torch.tanh(self.inner(grid))
        return self.outer(code), self.aisle(code)


def main():
    random.seed(19)
    np.random.seed(19)
    torch.manual_seed(19)
    loader = DataLoader(Baskets(1200, 19), batch_size=24, shuffle=True, collate_fn=indicator)
    model = NextAisle()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(2):
        for number, (grid, aisle) in enumerate(loader):
            rebuilt, scores = model(grid)
            loss = F.cross_entropy(scores, aisle) + F.binary_cross_entropy_with_logits(rebuilt, grid)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % 10 == 0:
                print(f"epoch {epoch} batch {number}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
