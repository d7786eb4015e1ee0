"""Residual CNN, eight shapes, AdamW, best checkpoint kept in memory."""
import copy
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    classes: int = 8
    side: int = 12
    channels: int = 16
    train_images: int = 1024
    val_images: int = 256
    batch_size: int = 32
    lr: float = 3e-3
    epochs: int = 3
    seed: int = 55


class ShapeImages(Dataset):
    """One of eight fixed binary patterns plus Gaussian noise, horizontally jittered."""

    def __init__(self, patterns, count, rng):
        self.labels = rng.integers(0, len(patterns), size=count)
        shifts = rng.integers(0, 2, size=count)
        images = np.stack([np.roll(patterns[c], s, axis=1) for c, s in zip(self.labels, shifts)])
        self.images = ((images + 0.8 * rng.normal(size=images.shape)) / 1.28).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]).unsqueeze(0), int(self.labels[index])


class Residual(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.a = nn.Conv2d(ch, ch, 3, padding=1)
        self.norm = nn.GroupNorm(4, ch)
        self.b = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.silu(self.norm(self.a(x))))


class ShapeNet(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.stem = nn.Conv2d(1, s.channels, 3, stride=2, padding=1)
        self.block = Residual(s.channels)
        self.fc = nn.Linear(s.channels * (s.side // 4) ** 2, s.classes)

    def forward(self, x):
        x = self.block(F.silu(self.stem(x)))
        x = F.avg_pool2d(x, 2).flatten(1)
        return self.fc(x)


def evaluate(net, loader):
    net.eval()
    loss, right, n = 0.0, 0, 0
    with torch.inference_mode():
        for images, labels in loader:
            out = net(images)
            loss += F.cross_entropy(out, labels, reduction="sum").item()
            right += (out.argmax(-1) == labels).sum().item()
            n += len(labels)
    return loss / n, right / n


def main():
    s = Settings()
    random.seed(s.seed)
    torch.manual_seed(s.seed)
    rng = np.random.default_rng(s.seed)
    patterns = np.where(rng.random((s.classes, s.side, s.side)) > 0.5, 1.0, -1.0)
    train_dl = DataLoader(ShapeImages(patterns, s.train_images, rng), s.batch_size, shuffle=True)
    val_dl = DataLoader(ShapeImages(patterns, s.val_images, rng), s.batch_size)

    net = ShapeNet(s)
    opt = torch.optim.AdamW(net.parameters(), lr=s.lr, weight_decay=0.0)
    best, best_state = float("inf"), None
    for epoch in range(s.epochs):
        net.train()
        for i, (images, labels) in enumerate(train_dl):
            opt.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            opt.step()
            if i % 8 == 0:
                print(f"  {epoch}/{i:02d} loss {loss.item():.4f}")
        val_loss, val_acc = evaluate(net, val_dl)
        print(f"epoch {epoch} val loss {val_loss:.4f} acc {val_acc:.3f}")
        if val_loss < best:
            best, best_state = val_loss, copy.deepcopy(net.state_dict())

    net.load_state_dict(best_state)
    print(f"best val loss {best:.4f}, reloaded: {evaluate(net, val_dl)[0]:.4f}")


if __name__ == "__main__":
    main()
