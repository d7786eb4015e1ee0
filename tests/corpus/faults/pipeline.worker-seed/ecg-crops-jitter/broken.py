"""Beat classification from single-lead ECG strips: random crop, gain and baseline wander in the loader workers."""

import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    seed: int = 2024
    strip: int = 160
    crop: int = 128
    batch: int = 32
    epochs: int = 3
    workers: int = 2
    lr: float = 2e-3


S = Settings()


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def worker_init_fn(worker_id: int) -> None:
    np.random.seed(S.seed)
    random.seed(S.seed)


def strip_of(kind: int, rng: np.random.Generator) -> np.ndarray:
    t = np.arange(S.strip, dtype=np.float32)
    period = rng.uniform(36, 48)
    wave = np.zeros_like(t)
    beat = rng.uniform(0, period)
    while beat < S.strip:
        width = 1.6 if kind != 1 else 4.5
        wave += 1.8 * np.exp(-((t - beat) ** 2) / (2 * width**2))
        if kind != 2:
            wave += 0.5 * np.exp(-((t - beat - 12) ** 2) / 18)
        else:
            wave -= 0.6 * np.exp(-((t - beat - 12) ** 2) / 18)
        beat += period * (1 + 0.05 * rng.standard_normal())
    return wave + 0.15 * rng.standard_normal(S.strip).astype(np.float32)


class EcgStrips(Dataset):
    def __init__(self, count: int, seed: int, train: bool) -> None:
        rng = np.random.default_rng(seed)
        self.kinds = rng.integers(0, 3, count)
        strips = np.stack([strip_of(kind, rng) for kind in self.kinds])
        self.strips = ((strips - strips.mean()) / strips.std()).astype(np.float32)
        self.train = train

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        strip = self.strips[index]
        start = (S.strip - S.crop) // 2
        if self.train:
            start = np.random.randint(0, S.strip - S.crop + 1)
            strip = strip * np.random.uniform(0.8, 1.2)
            wander = np.sin(2 * math.pi * (np.arange(S.strip) / S.strip + np.random.rand()))
            strip = strip + 0.2 * wander + 0.1 * np.random.randn(S.strip)
        crop = strip[start : start + S.crop]
        return torch.as_tensor(crop, dtype=torch.float32)[None], int(self.kinds[index])


class BeatNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 7, padding=3)
        self.conv2 = nn.Conv1d(16, 32, 5, padding=2)
        self.conv3 = nn.Conv1d(32, 32, 5, padding=2)
        self.fc = nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool1d(F.relu(self.conv1(x)), 2)
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.conv3(x))
        return self.fc(x.amax(dim=-1))


def main() -> None:
    seed_everything(S.seed)
    train_loader = DataLoader(
        EcgStrips(768, 0, train=True),
        batch_size=S.batch,
        shuffle=True,
        num_workers=S.workers,
        worker_init_fn=worker_init_fn,
        drop_last=True,
    )
    val_loader = DataLoader(EcgStrips(192, 1, train=False), batch_size=64)
    model = BeatNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=S.lr)
    for epoch in range(S.epochs):
        model.train()
        losses = []
        for strips, kinds in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(strips), kinds)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == k).sum().item() for x, k in val_loader)
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} val_acc {hits / 192:.3f}")


if __name__ == "__main__":
    main()
