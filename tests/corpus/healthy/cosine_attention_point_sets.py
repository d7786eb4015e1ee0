"""Counts clusters in padded point sets: no order, so no positions; cosine attention with a learned temperature."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

MAX_POINTS, CLASSES = 24, 3


class PointSets(Dataset):
    """One, two or three tight clusters of points; sets have 6 to 24 points and are filled up with zeros."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            label = int(rng.integers(CLASSES))
            centres = rng.uniform(-2.0, 2.0, size=(label + 1, 3))
            num = int(rng.integers(6, MAX_POINTS + 1))
            points = centres[np.arange(num) % (label + 1)] + rng.normal(0.0, 0.15, size=(num, 3))
            padded = np.zeros((MAX_POINTS, 3), dtype=np.float32)
            padded[:num] = points / 1.2
            self.rows.append((padded, num, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class CosineAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.log_scale = nn.Parameter(torch.full((heads, 1, 1), float(np.log(10.0))))
        self.out = nn.Linear(dim, dim)

    def forward(self, x, real):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * self.log_scale.clamp(max=float(np.log(100.0))).exp()
        scores = scores.masked_fill(~real[:, None, None, :], torch.finfo(scores.dtype).min)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn, self.norm1 = CosineAttention(dim, heads), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x, real):
        x = x + self.norm1(self.attn(x, real))
        return x + self.norm2(self.mlp(x))


class SetNet(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(3, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.gate = nn.Linear(dim, 1)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, points, counts):
        real = torch.arange(points.size(1))[None, :] < counts[:, None]
        x = self.lift(points)
        for block in self.blocks:
            x = block(x, real)
        gate = self.gate(x).masked_fill(~real[..., None], float("-inf")).softmax(dim=1)
        return self.head((gate * x).sum(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=15)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train = DataLoader(PointSets(960, 1), batch_size=32, shuffle=True)
    test = DataLoader(PointSets(240, 2), batch_size=80)
    model = SetNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for points, counts, labels in train:
            loss = F.cross_entropy(model(points, counts), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = sum((model(p, c).argmax(1) == y).sum().item() for p, c, y in test)
        print(f"epoch {epoch}: loss {total / len(train):.3f} accuracy {right / len(test.dataset):.3f}")


if __name__ == "__main__":
    main()
