"""House-number digits, cropped: a small convnet. The .mat export gives images (H, W, C, N) and a column of labels."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SEGMENTS = {1: "cf", 2: "acdeg", 3: "acdfg", 4: "bcdf", 5: "abdfg", 6: "abdefg", 7: "acf", 8: "abcdefg", 9: "abcdfg", 10: "abcefg"}


@dataclass
class Config:
    batch_size: int = 64
    epochs: int = 4
    lr: float = 2e-3
    seed: int = 7


def load_mat(count, rng):
    """Stands in for scipy.io.loadmat: pixels in 0..255 and the label column of the file."""
    X = np.zeros((16, 16, 3, count), dtype=np.uint8)
    y = rng.integers(1, 11, size=(count, 1))
    rects = {
        "a": (slice(2, 4), slice(4, 11)),
        "b": (slice(3, 8), slice(3, 5)),
        "c": (slice(3, 8), slice(10, 12)),
        "d": (slice(7, 9), slice(4, 11)),
        "e": (slice(8, 13), slice(3, 5)),
        "f": (slice(8, 13), slice(10, 12)),
        "g": (slice(12, 14), slice(4, 11)),
    }
    for n in range(count):
        paper, ink = rng.integers(20, 110, size=3), rng.integers(140, 240, size=3)
        img = np.ones((16, 16, 3)) * paper
        for s in SEGMENTS[int(y[n, 0])]:
            img[rects[s]] = ink
        img = np.roll(img, rng.integers(-1, 2, size=2), axis=(0, 1)) + rng.normal(0, 12, size=img.shape)
        X[:, :, :, n] = img.clip(0, 255)
    return {"X": X, "y": y}


def to_tensors(mat):
    images = torch.from_numpy(mat["X"]).permute(3, 2, 0, 1).float() / 255
    labels = torch.from_numpy(mat["y"]).long().squeeze(1)
    labels[labels == 10] = 0
    return images, labels


class DigitNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, num_classes))

    def forward(self, x):
        return self.classifier(self.features(x))


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    return right / seen


def main(cfg: Config):
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)

    train_x, train_y = to_tensors(load_mat(1536, rng))
    test_x, test_y = to_tensors(load_mat(384, rng))
    mean, std = train_x.mean((0, 2, 3), keepdim=True), train_x.std((0, 2, 3), keepdim=True)
    train = DataLoader(TensorDataset((train_x - mean) / std, train_y), batch_size=cfg.batch_size, shuffle=True)
    test = DataLoader(TensorDataset((test_x - mean) / std, test_y), batch_size=128)

    model = DigitNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch} train loss {running / len(train):.4f} test accuracy {evaluate(model, test):.3f}")


if __name__ == "__main__":
    main(Config())
