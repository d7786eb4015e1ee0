"""Speech enhancement: map noisy spectrogram frames (with context) to clean magnitudes."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 11
FRAMES = 64
BINS = 96
EPOCHS = 4
BATCH = 16
device = "cuda" if torch.cuda.is_available() else "cpu"


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class NoisySpeech(Dataset):
    """Harmonic stacks whose pitch glides, under stationary noise."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        bins = np.arange(BINS)[None, :]
        self.samples = []
        for _ in range(n):
            pitch = np.linspace(*rng.uniform(8, 20, 2), FRAMES)[:, None]
            tilt = rng.uniform(0.0, 0.01)
            shape = np.cos(2 * np.pi * bins / pitch) * 1.4 * np.exp(-tilt * bins)
            noisy = shape + rng.normal(0, 0.7, shape.shape)
            clean = 0.02 * (shape + 1.4)
            self.samples.append((torch.tensor(noisy, dtype=torch.float32), torch.tensor(clean, dtype=torch.float32)))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


class Enhancer(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3 * BINS, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, BINS),
        )

    def forward(self, spec):
        before = torch.cat([spec[:, :1], spec[:, :-1]], dim=1)
        after = torch.cat([spec[:, 1:], spec[:, -1:]], dim=1)
        return self.net(torch.cat([before, spec, after], dim=-1))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    err, n = 0.0, 0
    for noisy, clean in loader:
        err += (model(noisy.to(device)) - clean.to(device)).pow(2).sum().item()
        n += clean.numel()
    return err / n


def main():
    seed_everything(SEED)
    train_loader = DataLoader(NoisySpeech(320, 1), batch_size=BATCH, shuffle=True, drop_last=True)
    val_loader = DataLoader(NoisySpeech(64, 2), batch_size=BATCH)
    model = Enhancer().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    scaler = torch.amp.GradScaler(device)

    for epoch in range(EPOCHS):
        model.train()
        running = 0.0
        for noisy, clean in train_loader:
            noisy, clean = noisy.to(device), clean.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device, dtype=torch.float16):
                loss = criterion(model(noisy), clean)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            running += loss.item()
        print(f"epoch {epoch + 1}: train {running / len(train_loader):.3e}  val {validate(model, val_loader):.3e}")


if __name__ == "__main__":
    main()
