"""Classify walking styles from accelerometer windows with a variational information bottleneck."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 11
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

NUM_CLASSES = 4
WINDOW = 48
BETA = 1e-3


def synth_windows(count):
    labels = np.random.randint(0, NUM_CLASSES, size=count)
    t = np.arange(WINDOW) / WINDOW
    freqs = np.array([2.0, 3.5, 5.0, 7.0])[labels]
    phase = np.random.uniform(0, 2 * np.pi, size=count)
    base = np.sin(2 * np.pi * freqs[:, None] * t[None, :] + phase[:, None])
    side = np.cos(2 * np.pi * freqs[:, None] * t[None, :] + phase[:, None] * 0.5)
    up = 0.5 * np.abs(base)
    x = np.stack([base, side, up], axis=1) + 0.3 * np.random.randn(count, 3, WINDOW)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(labels)


class GaitBottleneck(nn.Module):
    def __init__(self, latent=12):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(3, 24, 7, padding=3),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(24, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.to_mean = nn.Linear(128, latent)
        self.to_logvar = nn.Linear(128, latent)
        self.classify = nn.Linear(latent, NUM_CLASSES)

    def forward(self, x):
        h = self.trunk(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        return self.classify(z), mean, logvar


def bottleneck_loss(logits, labels, mean, logvar):
    ce = F.cross_entropy(logits, labels)
    kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(dim=1).mean()
    return ce + BETA * kl, ce, kl


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = seen = 0
    counts = torch.zeros(NUM_CLASSES, dtype=torch.long)
    for x, y in loader:
        logits, _, _ = model(x)
        pred = logits.argmax(dim=1)
        counts += torch.bincount(pred, minlength=NUM_CLASSES)
        hits += (pred == y).sum().item()
        seen += y.numel()
    return hits / seen, counts.tolist()


train_x, train_y = synth_windows(960)
valid_x, valid_y = synth_windows(320)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(valid_x, valid_y), batch_size=160)

model = GaitBottleneck()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        logits, mean, logvar = model(x)
        loss, ce, kl = bottleneck_loss(logits, y, mean, logvar)
        loss.backward()
        optimizer.step()
        total += loss.item() * y.numel()
    accuracy, counts = evaluate(model, valid_loader)
    print(f"epoch {epoch}: train {total / len(train_x):.4f} valid acc {accuracy:.3f} predicted {counts}")
