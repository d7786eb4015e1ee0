"""Does a price series rise, fall or swing? Transforms in a list, a 1-d convolution, balanced accuracy by hand."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RISE, FALL, SWING = range(3)


class Jitter:
    def __init__(self, size):
        self.size = size

    def __call__(self, series):
        return series + np.random.normal(0.0, self.size, series.shape)


class Reverse:
    def __init__(self, chance):
        self.chance = chance

    def __call__(self, series):
        return series[::-1].copy() if random.random() < self.chance else series


class Gain:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __call__(self, series):
        return series * random.uniform(self.low, self.high)


class Prices(Dataset):
    def __init__(self, count, seed, transforms=()):
        rng = np.random.default_rng(seed)
        day = np.linspace(-1, 1, 40)
        self.kinds = rng.integers(0, 3, count)
        slope = np.select([self.kinds == RISE, self.kinds == FALL], [1.0, -1.0], 0.0) * rng.uniform(0.5, 1.5, count)
        swing = np.where(self.kinds == SWING, 1.2, 0.3)[:, None] * np.sin(day * 5 + rng.uniform(0, 6.28, (count, 1)))
        self.series = slope[:, None] * day + swing + rng.normal(0, 0.3, (count, 40))
        self.transforms = transforms

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        series = self.series[i]
        for transform in self.transforms:
            series = transform(series)
        return torch.tensor(series, dtype=torch.float32), int(self.kinds[i])


random.seed(3)
np.random.seed(3)
torch.manual_seed(3)
train = Prices(1200, 0, [Gain(0.8, 1.2), Jitter(0.1)])
check = Prices(300, 1)
net = nn.Sequential(
    nn.Unflatten(1, (1, 40)), nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(4), nn.Flatten(), nn.Linear(160, 3)
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
loss_of = nn.CrossEntropyLoss()
for epoch in range(5):
    net.train()
    for series, kind in DataLoader(train, batch_size=48, shuffle=True):
        loss = loss_of(net(series), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    right, seen = [0, 0, 0], [0, 0, 0]
    with torch.no_grad():
        for series, kind in DataLoader(check, batch_size=100):
            for guess, truth in zip(net(series).argmax(1).tolist(), kind.tolist()):
                seen[truth] += 1
                right[truth] += guess == truth
    print(f"epoch {epoch} loss {loss.item():.3f} balanced accuracy {sum(r / s for r, s in zip(right, seen)) / 3:.3f}")
