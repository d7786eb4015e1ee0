"""Segmentation of discs, warm-up by LambdaLR, moving average of the weights for validation."""
import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, n, rng):
        y, x = np.mgrid[0:14, 0:14]
        cx, cy, r = rng.uniform(4, 10, n), rng.uniform(4, 10, n), rng.uniform(2, 4, n)
        self.mask = ((x - cx[:, None, None]) ** 2 + (y - cy[:, None, None]) ** 2 < r[:, None, None] ** 2).astype(np.float32)
        image = self.mask * 1.5 + rng.normal(0, 0.8, self.mask.shape)
        self.image = ((image - image.mean()) / image.std()).astype(np.float32)

    def __len__(self):
        return len(self.mask)

    def __getitem__(self, i):
        return self.image[i][None], self.mask[i][None]


def network():
    return nn.Sequential(
        nn.Conv2d(1, 10, 5, padding=2), nn.GroupNorm(2, 10), nn.ReLU(), nn.Conv2d(10, 10, 5, padding=2), nn.ReLU(),
        nn.Conv2d(10, 1, 3, padding=1),
    )


class Average:
    def __init__(self, model, rate=0.9):
        self.model, self.rate = copy.deepcopy(model).requires_grad_(False), rate

    @torch.no_grad()
    def follow(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.rate)


random.seed(60)
np.random.seed(60)
torch.manual_seed(60)
rng = np.random.default_rng(60)
loader = DataLoader(Discs(640, rng), batch_size=32, shuffle=True)
held = DataLoader(Discs(96, rng), batch_size=48)
model = network()
average = Average(model)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 12))

for epoch in range(4):
    model.train()
    total = 0.0
    for image, mask in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(image), mask)
        loss.backward()
        optimizer.step()
        scheduler.step()
        average.follow(model)
        total += loss.item() / len(loader)
    average.model.eval()
    with torch.no_grad():
        right = [((average.model(i) > 0).float() == m).float().mean().item() for i, m in held]
    print(f"{epoch} loss {total:.4f} pixels right {np.mean(right):.3f} lr {scheduler.get_last_lr()[0]:.1e}")
