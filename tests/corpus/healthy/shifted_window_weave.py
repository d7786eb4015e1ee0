"""Fabric defects with a small shifted-window transformer: windows are folded into the batch, mirrored crops are harmless here."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW, GRID = 4, 8
DEFECTS = ["none", "hole", "thick thread", "stain"]


def weave(kind, rng, size=32):
    yy, xx = np.mgrid[:size, :size]
    cloth = 0.5 + 0.25 * np.sign(np.sin(xx * np.pi / 2 + 0.3) * np.sin(yy * np.pi / 2 + 0.3))
    cy, cx = rng.integers(6, size - 6, size=2)
    if kind == 1:
        cloth[cy - 3 : cy + 3, cx - 3 : cx + 3] = 0.0
    elif kind == 2:
        cloth[cy - 1 : cy + 2, :] = 1.0
    elif kind == 3:
        cloth = cloth - 0.4 * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 30)
    return (cloth + rng.normal(0, 0.06, size=cloth.shape)).astype(np.float32)


class Cloth(Dataset):
    def __init__(self, count, seed, mirrored):
        rng = np.random.default_rng(seed)
        self.kinds = rng.integers(0, len(DEFECTS), size=count)
        self.images = (np.stack([weave(k, rng) for k in self.kinds]) - 0.5) / 0.27
        self.mirrored = mirrored

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i])[None]
        if self.mirrored and random.random() < 0.5:
            image = image.flip(-1)
        if self.mirrored and random.random() < 0.5:
            image = image.flip(-2)
        return image, int(self.kinds[i])


def to_windows(x):
    b, h, w, c = x.shape
    x = x.view(b, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW * WINDOW, c)


def from_windows(x, b):
    x = x.view(b, GRID // WINDOW, GRID // WINDOW, WINDOW, WINDOW, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(b, GRID, GRID, -1)


def region_mask(shift):
    """Cells that only meet because the map was rolled must not see each other."""
    region = torch.zeros(1, GRID, GRID, 1)
    cuts = (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None))
    for i, rows in enumerate(cuts):
        for j, columns in enumerate(cuts):
            region[:, rows, columns] = 3 * i + j
    region = to_windows(region).squeeze(-1)
    return region[:, None, :] == region[:, :, None]


class WindowAttention(nn.Module):
    def __init__(self, dim, heads, shift):
        super().__init__()
        self.heads, self.shift = heads, shift
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = nn.Parameter(torch.zeros(heads, WINDOW * WINDOW, WINDOW * WINDOW))
        self.register_buffer("allowed", region_mask(shift) if shift else None, persistent=False)

    def forward(self, x):
        b = x.shape[0]
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), dims=(1, 2))
        win = to_windows(x)
        n, t, c = win.shape
        q, k, v = self.qkv(win).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * (c // self.heads) ** -0.5 + self.bias
        if self.allowed is not None:
            scores = scores.masked_fill(~self.allowed.repeat(b, 1, 1)[:, None], -1e9)
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        out = from_windows(self.proj(out), b)
        if self.shift:
            out = torch.roll(out, (self.shift, self.shift), dims=(1, 2))
        return out


class Block(nn.Module):
    def __init__(self, dim, heads, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, heads, shift)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinySwin(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, 4, stride=4)
        self.blocks = nn.Sequential(Block(dim, heads, 0), Block(dim, heads, 2), Block(dim, heads, 0))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(2 * dim, len(DEFECTS))

    def forward(self, image):
        x = self.norm(self.blocks(self.patch(image).permute(0, 2, 3, 1))).flatten(1, 2)
        return self.head(torch.cat([x.mean(1), x.amax(1)], dim=-1))


def main():
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    train = DataLoader(Cloth(640, seed=1, mirrored=True), batch_size=32, shuffle=True)
    val = DataLoader(Cloth(160, seed=2, mirrored=False), batch_size=80)
    model = TinySwin()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        total = 0.0
        for image, kind in train:
            loss = F.cross_entropy(model(image), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = sum(int((model(image).argmax(-1) == kind).sum()) for image, kind in val)
        print(f"epoch {epoch} loss {total / len(train):.4f} val accuracy {right / 160:.3f}")


if __name__ == "__main__":
    main()
