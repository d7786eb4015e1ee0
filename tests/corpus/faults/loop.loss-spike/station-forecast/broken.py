"""Next-day temperature anomaly from two weeks of station history. Records come from a monthly archive."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read_archive(stations=12, days=120, seed=4):
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 0.4, (stations, 1))
    season = np.sin(np.arange(days) / 9.0 + rng.uniform(0, 6, (stations, 1)))
    noise = np.zeros((stations, days))
    for day in range(1, days):
        noise[:, day] = 0.7 * noise[:, day - 1] + 0.25 * rng.normal(size=stations)
    anomaly = level + season + noise
    following = np.roll(anomaly, -1, axis=1)
    following[7, 63] = -999.9
    return anomaly.astype(np.float32), following.astype(np.float32)


class StationWindows(Dataset):
    def __init__(self, anomaly, following, stations, window=14):
        self.window = window
        self.anomaly, self.following = anomaly, following
        self.index = [(s, d) for s in stations for d in range(window - 1, anomaly.shape[1] - 1, 2)]
        self.index = [(s, d) for s, d in self.index if np.isfinite(following[s, d])]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        station, day = self.index[i]
        history = torch.from_numpy(self.anomaly[station, day - self.window + 1 : day + 1])
        return history.unsqueeze(-1), torch.tensor(self.following[station, day])


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, history):
        _, last = self.gru(history)
        return self.head(last[-1]).squeeze(-1)


def train(model, loader, optimizer, loss_fn, epoch):
    model.train()
    for i, (history, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = loss_fn(model(history), target)
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(f"epoch {epoch} iter {i:2d} loss {loss.item():.4f}")


@torch.no_grad()
def test(model, loader, loss_fn):
    model.eval()
    total = sum(loss_fn(model(history), target).item() * len(target) for history, target in loader)
    return total / len(loader.dataset)


if __name__ == "__main__":
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    anomaly, following = read_archive()
    train_loader = DataLoader(StationWindows(anomaly, following, range(10)), batch_size=32, shuffle=True)
    test_loader = DataLoader(StationWindows(anomaly, following, range(10, 12)), batch_size=64)
    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.MSELoss()
    for epoch in range(5):
        train(model, train_loader, optimizer, loss_fn, epoch)
        print(f"epoch {epoch} test mse {test(model, test_loader, loss_fn):.4f}")
