"""Loan default from a raw table: gaps filled and flagged, the first layer standardises, rare class drawn more often."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

random.seed(52)
np.random.seed(52)
torch.manual_seed(52)


def applications(count, rng):
    """Columns: yearly income, age, debt share, months at address. Outcome: 0 repaid, 1 defaulted, -1 still running."""
    income = rng.lognormal(10.3, 0.5, count)
    age = rng.uniform(18, 75, count)
    debt = rng.beta(2, 5, count)
    months = rng.exponential(60, count)
    risk = -6.2 + 9.0 * debt - 0.9 * (np.log(income) - 10.3) - 0.008 * months
    outcome = (rng.random(count) < 1 / (1 + np.exp(-2.2 * risk))).astype(np.int64)
    outcome[rng.random(count) < 0.08] = -1
    table = np.column_stack([income, age, debt, months])
    table[rng.random(table.shape) < 0.05] = np.nan
    return table.astype(np.float32), outcome


def fill(table, middle):
    gaps = np.isnan(table)
    return np.where(gaps, middle, table).astype(np.float32), gaps.astype(np.float32)


class Scorecard(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.standardise = nn.BatchNorm1d(columns, affine=False)
        self.net = nn.Sequential(nn.Linear(2 * columns, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, columns, gaps):
        return self.net(torch.cat([self.standardise(columns), gaps], dim=1))


rng = np.random.default_rng(52)
table, outcome = applications(3000, rng)
test_table, test_outcome = applications(800, rng)
middle = np.nanmedian(table, axis=0)
train_set = TensorDataset(*map(torch.from_numpy, (*fill(table, middle), outcome)))
test_set = TensorDataset(*map(torch.from_numpy, (*fill(test_table, middle), test_outcome)))
draw = np.where(outcome == 1, 1.0 / (outcome == 1).mean(), 1.0 / (outcome != 1).mean())
sampler = WeightedRandomSampler(torch.from_numpy(draw), len(draw), generator=torch.Generator().manual_seed(52))
loader = DataLoader(train_set, batch_size=64, sampler=sampler, drop_last=True)

model = Scorecard(table.shape[1])
loss_fn = nn.CrossEntropyLoss(ignore_index=-1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(2):
    model.train()
    total = 0.0
    for columns, gaps, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(columns, gaps), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        columns, gaps, y = test_set.tensors
        guess = model(columns, gaps).argmax(1)
        recall = (guess[y == 1] == 1).float().mean()
        quiet = (guess[y == 0] == 0).float().mean()
    print(f"epoch {epoch} loss {total / len(loader):.4f} recall {recall:.3f} specificity {quiet:.3f}")
