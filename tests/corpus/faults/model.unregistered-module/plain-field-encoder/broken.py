"""Click model over mixed categorical and numeric fields, with one small encoder per field."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 21
CARDINALITIES = [30, 12, 50]
NUMERIC = 4
DIM = 16


class CategoryEncoder:
    """Looks a category up and refines the vector."""

    def __init__(self, cardinality, dim):
        self.lookup = nn.Embedding(cardinality, dim)
        self.refine = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def __call__(self, ids):
        v = self.lookup(ids)
        return v + self.refine(v)


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.device_field = CategoryEncoder(CARDINALITIES[0], DIM)
        self.region_field = CategoryEncoder(CARDINALITIES[1], DIM)
        self.item_field = CategoryEncoder(CARDINALITIES[2], DIM)
        self.numeric = nn.Linear(NUMERIC, DIM)
        self.tower = nn.Sequential(nn.Linear(4 * DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, categories, numbers):
        parts = [
            self.device_field(categories[:, 0]),
            self.region_field(categories[:, 1]),
            self.item_field(categories[:, 2]),
            self.numeric(numbers),
        ]
        return self.tower(torch.cat(parts, dim=-1)).squeeze(-1)


def log_table(n):
    rng = np.random.default_rng(SEED)
    effect = [rng.normal(size=c) for c in CARDINALITIES]
    cats = np.stack([rng.integers(0, c, n) for c in CARDINALITIES], axis=1)
    nums = rng.normal(size=(n, NUMERIC))
    score = sum(e[cats[:, i]] for i, e in enumerate(effect)) + nums @ rng.normal(size=NUMERIC) * 0.5
    clicked = rng.random(n) < 1 / (1 + np.exp(-1.5 * score))
    return TensorDataset(
        torch.from_numpy(cats),
        torch.tensor(nums, dtype=torch.float32),
        torch.tensor(clicked, dtype=torch.float32),
    )


class Fitter:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.BCEWithLogitsLoss()

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for cats, nums, clicked in loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(cats, nums), clicked)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        hits = [((self.model(c, x) > 0) == (y > 0.5)).float().mean().item() for c, x, y in loader]
        return sum(hits) / len(hits)


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    train, valid = torch.utils.data.random_split(log_table(2400), [2000, 400])
    fitter = Fitter(ClickModel(), lr=3e-3)
    train_loader = DataLoader(train, batch_size=100, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=400)
    for epoch in range(5):
        loss = fitter.epoch(train_loader)
        print(f"epoch {epoch} loss {loss:.4f} valid accuracy {fitter.accuracy(valid_loader):.3f}")


if __name__ == "__main__":
    main()
