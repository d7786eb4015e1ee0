"""Next-hour water level from the last day, read from per-station files through an iterable dataset."""

import math
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

random.seed(31)
torch.manual_seed(31)

STATIONS = {"harbour": 2.2, "river": -1.8, "cape": 0.4, "lagoon": -0.8}


def read_station(level, hours=420):
    t = torch.arange(hours, dtype=torch.float32)
    tide = torch.sin(2 * math.pi * t / 12.4 + random.random() * 6) + 0.3 * torch.sin(2 * math.pi * t / 24)
    return level + tide + 0.1 * torch.randn(hours)


class TideWindows(IterableDataset):
    def __init__(self, series, window=24, shuffle_buffer=1):
        self.series = series
        self.window = window
        self.shuffle_buffer = shuffle_buffer

    def windows(self):
        for record in self.series:
            for start in range(0, len(record) - self.window, 2):
                yield record[start : start + self.window, None], record[start + self.window]

    def __iter__(self):
        buffer = []
        for item in self.windows():
            buffer.append(item)
            if len(buffer) >= self.shuffle_buffer:
                yield buffer.pop(random.randrange(len(buffer)))
        random.shuffle(buffer)
        yield from buffer


class TideLSTM(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).squeeze(-1)


def main():
    series = [read_station(level) for level in STATIONS.values()]
    flat = torch.cat([s[:340] for s in series])
    mean, std = flat.mean(), flat.std()
    train = TideWindows([(s[:340] - mean) / std for s in series])
    test = TideWindows([(s[340:] - mean) / std for s in series])
    train_loader, test_loader = DataLoader(train, batch_size=32), DataLoader(test, batch_size=64)
    model = TideLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.MSELoss()
    for epoch in range(5):
        model.train()
        count, total = 0, 0.0
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total, count = total + loss.item(), count + 1
        model.eval()
        with torch.no_grad():
            errors = [loss_fn(model(x), y).item() for x, y in test_loader]
        print(f"epoch {epoch} train {total / count:.4f} test {sum(errors) / len(errors):.4f}")


main()
