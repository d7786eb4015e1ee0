"""Keyword spotting on raw waveforms: learned filterbank, then a small convolutional classifier."""

import numpy as np
import torch
import torch.nn as nn

np.random.seed(52)
torch.manual_seed(52)
RATE, CLASSES = 400, 4


def clips(n):
    t = np.arange(RATE) / RATE
    y = np.random.randint(0, CLASSES, n)
    lo = np.array([20, 35, 20, 35])[y]
    hi = np.array([60, 60, 90, 90])[y]
    half = (t < 0.5).astype("float32")
    x = np.sin(2 * np.pi * lo[:, None] * t + np.random.rand(n, 1) * 6) * half
    x = x + np.sin(2 * np.pi * hi[:, None] * t + np.random.rand(n, 1) * 6) * (1 - half)
    x = x + 0.4 * np.random.randn(n, RATE)
    return torch.tensor(x / x.std(), dtype=torch.float32).unsqueeze(1), torch.tensor(y)


class Filterbank(nn.Module):
    def __init__(self, bands=16):
        super().__init__()
        self.filters = nn.Conv1d(1, bands, 41, stride=4, padding=20, bias=False)
        self.scale = nn.Parameter(torch.ones(1, bands, 1))

    def forward(self, wave):
        energy = nn.functional.avg_pool1d(self.filters(wave) ** 2, 5)
        return torch.log1p(energy * self.scale.abs())


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = Filterbank()
        self.net = nn.Sequential(
            nn.Conv1d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(32, 32, 3, padding=1, stride=2),
            nn.ReLU(),
        )
        self.cls = nn.Linear(32 * 10, CLASSES)

    @torch.no_grad()
    def features(self, wave):
        return self.bank(wave)

    def forward(self, wave):
        return self.cls(self.net(self.features(wave)).flatten(1))


model = Spotter()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x, y = clips(480)
xv, yv = clips(96)
for epoch in range(4):
    model.train()
    for idx in np.array_split(np.random.permutation(len(x)), 20):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {(model(xv).argmax(1) == yv).float().mean():.3f}")
