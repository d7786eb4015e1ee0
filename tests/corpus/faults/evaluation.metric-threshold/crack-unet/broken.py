# %% [markdown]
# Crack segmentation on synthetic concrete patches: a two-level U-Net

# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

random.seed(42)
np.random.seed(42)
torch.manual_seed(42)

# %%
SIZE = 24


def draw_patch():
    """A dark, wandering line on a grainy surface, and its mask."""
    surface = np.random.randn(SIZE, SIZE) * 0.6
    mask = np.zeros((SIZE, SIZE), dtype=np.float32)
    col = np.random.uniform(6, SIZE - 6)
    drift = np.random.uniform(-0.4, 0.4)
    for row in range(SIZE):
        col = np.clip(col + drift + np.random.randn() * 0.4, 2, SIZE - 3)
        c = int(round(col))
        mask[row, c - 1 : c + 2] = 1.0
    return surface - 1.2 * mask, mask


def draw_many(n):
    patches = [draw_patch() for _ in range(n)]
    x = torch.tensor(np.stack([p[0] for p in patches]), dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(np.stack([p[1] for p in patches]), dtype=torch.float32).unsqueeze(1)
    return TensorDataset(x, y)


train_dl = DataLoader(draw_many(384), batch_size=32, shuffle=True)
valid_dl = DataLoader(draw_many(96), batch_size=32)


# %%
def conv_pair(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.LeakyReLU(0.1), nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(4, o), nn.LeakyReLU(0.1)
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = conv_pair(1, 8), conv_pair(8, 16)
        self.mid = conv_pair(16, 16)
        self.u2, self.u1 = conv_pair(32, 8), conv_pair(16, 8)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        u = self.u2(torch.cat([F.interpolate(m, scale_factor=2.0), b], 1))
        u = self.u1(torch.cat([F.interpolate(u, scale_factor=2.0), a], 1))
        return self.last(u)


def dice(pred, mask):
    inter = (pred * mask).sum(dim=(1, 2, 3))
    return (2 * inter + 1) / (pred.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3)) + 1)


# %%
model = UNet()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
bce = nn.BCEWithLogitsLoss()

for epoch in range(8):
    model.train()
    losses = []
    for x, y in train_dl:
        opt.zero_grad()
        loss = bce(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())

    model.eval()
    scores = []
    with torch.no_grad():
        for x, y in valid_dl:
            out = model(x)
            pred = (out > 0.5).float()
            scores.append(dice(pred, y))
    print(f"epoch {epoch}  bce {np.mean(losses):.4f}  dice {torch.cat(scores).mean().item():.4f}")
