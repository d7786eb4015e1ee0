"""Scan -> embedding -> multi-label findings, with Accelerate."""

import random

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Scanner(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 16, 5, stride=2), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool1d(4)

    def forward(self, signal):
        return self.pool(self.conv(signal)).flatten(1)


class Findings(nn.Module):
    def __init__(self):
        super().__init__()
        self.scan = Scanner()
        self.norm = nn.LayerNorm(64)
        self.labels = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, signal):
        code = self.scan(signal)
        code = self.norm(code)
        return self.labels(code)


def traces(n):
    t = np.linspace(0, 1, 64)
    y = np.random.randint(0, 2, (n, 3))
    freq = np.array([5, 11, 19])
    phase = np.random.uniform(0, 6.28, (n, 3, 1))
    waves = np.sin(2 * np.pi * freq[None, :, None] * t + phase)
    x = (y[..., None] * waves).sum(1) + np.random.normal(0, 0.2, (n, 64))
    x = (x - x.mean()) / x.std()
    return TensorDataset(torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


def main():
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    acc = Accelerator(cpu=True)
    model = Findings()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model, opt, loader, val = acc.prepare(model, opt, DataLoader(traces(960), 32, shuffle=True), DataLoader(traces(128), 64))
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        model.train()
        for signal, found in loader:
            opt.zero_grad()
            loss = criterion(model(signal), found)
            acc.backward(loss)
            opt.step()
        model.eval()
        right = []
        with torch.no_grad():
            for signal, found in val:
                right.append(((model(signal) > 0) == found.bool()).float().mean().item())
        acc.print(f"epoch {epoch} loss {loss.item():.3f} accuracy {np.mean(right):.3f}")


main()
