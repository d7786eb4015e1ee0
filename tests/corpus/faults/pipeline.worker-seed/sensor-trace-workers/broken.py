"""Keyword detection on short sensor traces, with random gain, shift and noise drawn inside the data set."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Traces(Dataset):
    def __init__(self, count, seed, train):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, count)
        t = np.linspace(0, 1, 64)
        freq = np.array([3, 5, 8, 12])[self.labels]
        phase = rng.uniform(0, 2 * np.pi, count)
        self.traces = np.sin(2 * np.pi * freq[:, None] * t + phase[:, None]).astype(np.float32)
        self.traces += rng.normal(0, 0.3, self.traces.shape).astype(np.float32)
        self.train = train
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.labels)

    def augment(self, trace):
        shift = int(self.rng.integers(-8, 9))
        gain = self.rng.uniform(0.7, 1.3)
        noise = self.rng.normal(0, 0.3, trace.shape)
        return np.roll(trace, shift) * gain + noise

    def __getitem__(self, i):
        trace = self.traces[i]
        if self.train:
            trace = self.augment(trace)
        return torch.as_tensor(trace, dtype=torch.float32)[None], int(self.labels[i])


def reseed(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(7)


def build_model():
    return nn.Sequential(
        nn.Conv1d(1, 16, 7, stride=2, padding=3),
        nn.ReLU(),
        nn.Conv1d(16, 32, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(128, 4),
    )


def evaluate(model, loader):
    model.eval()
    hits = seen = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    model.train()
    return hits / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    opt = parser.parse_args()
    torch.manual_seed(7)
    np.random.seed(7)

    train_loader = DataLoader(
        Traces(800, seed=1, train=True),
        batch_size=32,
        shuffle=True,
        num_workers=opt.workers,
        worker_init_fn=reseed,
    )
    test_loader = DataLoader(Traces(200, seed=2, train=False), batch_size=100)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(opt.epochs):
        losses = []
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.3f} test acc {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
