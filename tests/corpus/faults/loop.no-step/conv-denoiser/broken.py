"""Denoise short one-dimensional signals with a small residual convolutional network."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 1203
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


class NoisyWaves(Dataset):
    """Sum of two sines plus white noise; the clean wave is the target."""

    def __init__(self, n, length=48):
        t = np.linspace(0, 2 * np.pi, length)
        freq = rng.uniform(1, 5, size=(n, 2, 1))
        phase = rng.uniform(0, 2 * np.pi, size=(n, 2, 1))
        clean = np.sin(freq * t + phase).sum(axis=1)
        noisy = clean + rng.normal(0, 0.6, size=clean.shape)
        scale = 1.17
        self.clean = torch.tensor(clean / scale, dtype=torch.float32).unsqueeze(1)
        self.noisy = torch.tensor(noisy / scale, dtype=torch.float32).unsqueeze(1)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]


class Denoiser(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv1d(1, channels, 7, padding=3)
        self.mid = nn.Conv1d(channels, channels, 7, padding=3)
        self.out = nn.Conv1d(channels, 1, 7, padding=3)

    def forward(self, x):
        h = torch.nn.functional.silu(self.stem(x))
        h = h + torch.nn.functional.silu(self.mid(h))
        return self.out(h)


train_loader = DataLoader(NoisyWaves(640), batch_size=32, shuffle=True)
test_loader = DataLoader(NoisyWaves(128), batch_size=64)
net = Denoiser()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)

best = float("inf")
for epoch in range(4):
    net.train()
    total = 0.0
    for noisy, clean in train_loader:
        optimizer.zero_grad()
        restored = net(noisy)
        loss = criterion(restored, clean)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        total += loss.item()

    net.eval()
    error = 0.0
    with torch.no_grad():
        for noisy, clean in test_loader:
            error += criterion(net(noisy), clean).item()
    error /= len(test_loader)
    best = min(best, error)
    print(f"epoch {epoch}: train mse {total / len(train_loader):.4f}, test mse {error:.4f}, best {best:.4f}")
