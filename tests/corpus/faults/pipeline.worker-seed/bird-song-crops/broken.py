"""Bird calls: random crops with background noise are cut by loader workers."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 123
CALLS = [4.0, 7.0, 11.0, 16.0]
CROP = 128


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class CropAndNoise:
    def __init__(self, length, noise):
        self.length = length
        self.noise = noise

    def __call__(self, wave):
        start = np.random.randint(0, len(wave) - self.length)
        crop = wave[start : start + self.length] * np.random.uniform(0.7, 1.3)
        return crop + self.noise * np.random.randn(self.length)


class BirdSong(Dataset):
    def __init__(self, n, transform, seed):
        rng = np.random.default_rng(seed)
        time = np.arange(400) / 128
        self.labels = rng.integers(0, len(CALLS), n)
        self.waves = [np.sin(2 * np.pi * (CALLS[y] + rng.normal(0, 0.3)) * time + rng.uniform(0, 6.28)) for y in self.labels]
        self.transform = transform

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        return torch.tensor(self.transform(self.waves[i]), dtype=torch.float32)[None], int(self.labels[i])


def worker_init(worker_id):
    worker_seed = SEED
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def make_model():
    return nn.Sequential(
        nn.Conv1d(1, 16, 15, stride=2, padding=7),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 32, 7, padding=3),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(32, len(CALLS)),
    )


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for wave, label in loader:
            right += (model(wave).argmax(1) == label).sum().item()
    return right / len(loader.dataset)


def main():
    seed_everything(SEED)
    train = BirdSong(384, CropAndNoise(CROP, 0.4), seed=1)
    test = BirdSong(96, lambda wave: wave[:CROP], seed=2)
    train_loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=2, worker_init_fn=worker_init)
    test_loader = DataLoader(test, batch_size=48)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        total = 0.0
        for wave, label in train_loader:
            loss = criterion(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.3f} test {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
