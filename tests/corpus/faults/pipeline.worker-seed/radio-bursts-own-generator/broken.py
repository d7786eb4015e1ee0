"""Modulation of short radio bursts; channel noise is drawn afresh in the data workers."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = ("bpsk", "qpsk", "am", "fm")


class Bursts(Dataset):
    def __init__(self, count, length=64, snr_db=9.0):
        self.count, self.length = count, length
        self.sigma = 10 ** (-snr_db / 20)
        self.rng = np.random.default_rng(2024)

    def __len__(self):
        return self.count

    def clean(self, index):
        fixed = np.random.default_rng(index)
        kind = index % len(KINDS)
        t = np.arange(self.length)
        symbols = fixed.integers(0, 4, size=self.length // 8).repeat(8)
        if kind == 0:
            return kind, np.exp(1j * np.pi * (symbols % 2))
        if kind == 1:
            return kind, np.exp(1j * (np.pi / 4 + np.pi / 2 * symbols))
        swing = np.sin(2 * np.pi * fixed.uniform(0.02, 0.05) * t + fixed.uniform(0, 6))
        return kind, (1 + 0.8 * swing) + 0j if kind == 2 else np.exp(1j * 3.0 * swing)

    def __getitem__(self, index):
        kind, wave = self.clean(index)
        noise = self.rng.normal(0, self.sigma, size=(2, self.length))
        wave = wave * np.exp(1j * self.rng.uniform(0, 2 * np.pi))
        x = np.stack([wave.real, wave.imag]) + noise
        return torch.tensor(x, dtype=torch.float32), kind


def start_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


class Receiver(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(2, width, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, width, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
            nn.Flatten(), nn.Linear(width, len(KINDS)),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


if __name__ == "__main__":
    random.seed(2024)
    np.random.seed(2024)
    torch.manual_seed(2024)
    loader = DataLoader(Bursts(640), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=start_worker)
    model = Receiver()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        total = right = 0.0
        for x, kind in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            right += (out.argmax(1) == kind).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} accuracy {right / len(loader.dataset):.3f}")
