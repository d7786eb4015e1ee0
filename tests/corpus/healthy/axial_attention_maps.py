"""Segment coloured stripes on small maps with axial attention: rows and columns attend in turn, folded into the batch."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Setup:
    side: int = 12
    classes: int = 3
    dim: int = 32
    heads: int = 4
    batch: int = 16
    epochs: int = 4
    lr: float = 2e-3
    seed: int = 41


class StripeMaps(Dataset):
    """A cell is class 1 in the marked row, 2 in the marked column, else 0; the marks sit on the first column and row."""

    def __init__(self, n, side, seed):
        g = torch.Generator().manual_seed(seed)
        self.maps = 0.3 * torch.randn(n, 2, side, side, generator=g)
        self.labels = torch.zeros(n, side, side, dtype=torch.long)
        for i in range(n):
            row, column = torch.randint(1, side, (2,), generator=g).tolist()
            self.maps[i, 0, row, 0] += 4.0
            self.maps[i, 1, 0, column] += 4.0
            self.labels[i, :, column] = 2
            self.labels[i, row, :] = 1
        self.maps = (self.maps - self.maps.mean()) / self.maps.std()

    def __len__(self):
        return len(self.maps)

    def __getitem__(self, i):
        return self.maps[i], self.labels[i]


class AxisAttention(nn.Module):
    """Attention along the last but one axis of (groups, length, dim), with a learned code along that axis alone."""

    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.norm = nn.LayerNorm(s.dim)
        self.code = nn.Parameter(0.1 * torch.randn(s.side, s.dim))
        self.qkv = nn.Linear(s.dim, 3 * s.dim)
        self.out = nn.Linear(s.dim, s.dim)

    def forward(self, x):
        groups, length, dim = x.shape
        qkv = self.qkv(self.norm(x + self.code)).view(groups, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.permute(0, 2, 1, 3).reshape(groups, length, dim))


class AxialBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.along_rows, self.along_columns = AxisAttention(s), AxisAttention(s)
        self.mlp = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, 2 * s.dim), nn.GELU(), nn.Linear(2 * s.dim, s.dim))

    def forward(self, x):
        b, h, w, d = x.shape
        x = self.along_rows(x.reshape(b * h, w, d)).view(b, h, w, d)
        x = self.along_columns(x.transpose(1, 2).reshape(b * w, h, d)).view(b, w, h, d).transpose(1, 2)
        return x + self.mlp(x)


class AxialSegmenter(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.stem = nn.Linear(2, s.dim)
        self.blocks = nn.Sequential(AxialBlock(s), AxialBlock(s))
        self.head = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, s.classes))

    def forward(self, maps):
        return self.head(self.blocks(self.stem(maps.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)


def main():
    s = Setup()
    random.seed(s.seed)
    np.random.seed(s.seed)
    torch.manual_seed(s.seed)
    train = DataLoader(StripeMaps(480, s.side, 1), batch_size=s.batch, shuffle=True)
    valid = DataLoader(StripeMaps(64, s.side, 2), batch_size=32)
    model = AxialSegmenter(s)
    optimizer = torch.optim.Adam(model.parameters(), lr=s.lr)
    weights = torch.tensor([0.5, 2.0, 2.0])
    for epoch in range(s.epochs):
        model.train()
        for maps, labels in train:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(maps), labels, weight=weights)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = sum((model(maps).argmax(1) == labels).sum().item() for maps, labels in valid)
        print(f"epoch {epoch} loss {loss.item():.3f} valid accuracy {correct / (64 * s.side**2):.3f}")


if __name__ == "__main__":
    main()
