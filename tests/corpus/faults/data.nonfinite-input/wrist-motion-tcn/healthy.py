"""Activity recognition from wrist accelerometer windows with a small temporal convolution network."""
from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

ACTIVITIES = ("walk", "run", "stairs", "rest")


@dataclass
class Recording:
    signal: np.ndarray  # (time, 3) in g
    activity: int


def simulate_recording(rng: np.random.Generator, activity: int, seconds: int = 40, hz: int = 16) -> Recording:
    t = np.arange(seconds * hz) / hz
    cadence = (1.7, 2.8, 1.1, 0.25)[activity] * rng.uniform(0.92, 1.08)
    gravity = rng.normal(0, 0.5, size=(1, 3))
    strength = rng.uniform(0.3, 0.9)
    axes = [strength * np.sin(2 * math.pi * cadence * (k + 1) / 2 * t + rng.uniform(0, 6)) for k in range(3)]
    signal = np.stack(axes, axis=1) + gravity + rng.normal(0, 0.08, size=(len(t), 3))
    if rng.random() < 0.12:  # the logger holds its last value while the battery is swapped
        start = int(rng.integers(0, len(t) - 6 * hz))
        signal[start : start + 6 * hz] = signal[start]
    signal = np.round(signal * 256) / 256  # the sensor counts in 1/256 g
    return Recording(signal.astype(np.float32), activity)


class Windows(Dataset):
    def __init__(self, recordings: list[Recording], width: int = 48, hop: int = 24) -> None:
        self.items = [(r, s) for r in recordings for s in range(0, len(r.signal) - width + 1, hop)]
        self.width = width

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        recording, start = self.items[index]
        x = torch.from_numpy(recording.signal[start : start + self.width].T.copy())
        centred = x - x.mean(dim=1, keepdim=True)
        return centred / (centred.pow(2).mean().sqrt() + 1e-3), recording.activity


class Residual(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.norm(self.conv(x)))


class ActivityNet(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.stem = nn.Conv1d(3, width, 5, padding=2)
        self.blocks = nn.Sequential(*(Residual(width, d) for d in (1, 2, 4)))
        self.head = nn.Linear(width, len(ACTIVITIES))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean(dim=-1))


def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    hits = total = 0
    with torch.inference_mode():
        for x, y in loader:
            hits += int((model(x).argmax(-1) == y).sum())
            total += len(y)
    return hits / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    rng = np.random.default_rng(args.seed)
    people = [simulate_recording(rng, i % len(ACTIVITIES)) for i in range(48)]
    train = DataLoader(Windows(people[:36]), args.batch_size, shuffle=True, drop_last=True)
    held_out = DataLoader(Windows(people[36:]), 128)

    model = ActivityNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch} loss {running / len(train):.4f} held-out accuracy {accuracy(model, held_out):.3f}")


if __name__ == "__main__":
    main()
