"""Segment blobs in small volumes; memory allows two volumes at a time, so gradients are accumulated."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 48
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

PER_PASS, PASSES, UPDATES = 2, 8, 25
SIDE = 8


def volume():
    """A dim or bright scan with one cubic blob; brightness and contrast differ from scan to scan."""
    scan = torch.randn(SIDE, SIDE, SIDE) * 0.5
    truth = torch.zeros(SIDE, SIDE, SIDE)
    z, y, x = (random.randint(0, SIDE - 4) for _ in range(3))
    scan[z : z + 4, y : y + 4, x : x + 4] += 1.5
    truth[z : z + 4, y : y + 4, x : x + 4] = 1.0
    return (scan - 0.1875) / 0.7, truth


def micro_batch(n):
    scans, truths = zip(*(volume() for _ in range(n)))
    return torch.stack(scans)[:, None], torch.stack(truths)[:, None]


class GlobalContext(nn.Module):
    """Squeezes the volume to one vector and adds it back at every voxel."""

    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Linear(channels, channels)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, h):
        pooled = h.mean(dim=(2, 3, 4))
        context = self.norm(self.fc(pooled))
        return h + context[:, :, None, None, None]


class Segmenter(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.conv_in = nn.Conv3d(1, channels, 3, padding=1)
        self.context = GlobalContext(channels)
        self.conv_mid = nn.Conv3d(channels, channels, 3, padding=1)
        self.conv_out = nn.Conv3d(channels, 1, 1)

    def forward(self, scan):
        h = self.context(F.relu(self.conv_in(scan)))
        return self.conv_out(F.relu(self.conv_mid(h)))


def dice(logits, truth):
    hit = (logits > 0).float()
    return (2 * (hit * truth).sum() / (hit.sum() + truth.sum()).clamp(min=1)).item()


net = Segmenter()
optimizer = torch.optim.Adam(net.parameters(), lr=6e-3)
held_out = micro_batch(32)
for update in range(1, UPDATES + 1):
    net.train()
    optimizer.zero_grad()
    total = 0.0
    for _ in range(PASSES):
        scan, truth = micro_batch(PER_PASS)
        loss = F.binary_cross_entropy_with_logits(net(scan), truth) / PASSES
        loss.backward()
        total += loss.item()
    optimizer.step()
    if update % 5 == 0:
        net.eval()
        with torch.no_grad():
            logits = net(held_out[0])
        print(f"update {update} loss {total:.4f} held-out dice {dice(logits, held_out[1]):.3f}")
