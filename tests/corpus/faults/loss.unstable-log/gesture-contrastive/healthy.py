"""Self-supervised embeddings of gesture traces: two augmented views per trace, InfoNCE with a cold temperature."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim

TEMPERATURE = 0.01


def gesture_bank(count):
    t = np.linspace(0, 2 * np.pi, 24)
    traces = []
    for _ in range(count):
        a, b = np.random.randint(1, 4, size=2)
        phase = np.random.uniform(0, 2 * np.pi, size=2)
        amp = np.random.uniform(0.7, 1.3, size=2)
        xy = np.stack([amp[0] * np.cos(a * t + phase[0]), amp[1] * np.sin(b * t + phase[1])])
        traces.append(xy)
    traces = np.asarray(traces, dtype=np.float32)
    return torch.from_numpy(traces / traces.std())


def augment(x):
    jitter = 0.15 * torch.randn_like(x)
    scale = 1 + 0.1 * torch.randn(x.size(0), 1, 1)
    shift = 0.1 * torch.randn(x.size(0), 2, 1)
    return x * scale + shift + jitter


class GestureEncoder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 48, 3, padding=1), nn.ReLU()
        )
        self.project = nn.Sequential(nn.Linear(48 * 12, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.project(self.conv(x).flatten(1)), dim=1)


def info_nce(za, zb):
    sim = za @ zb.T / TEMPERATURE
    positive = sim.diagonal()
    return (torch.logsumexp(sim, dim=1) - positive).mean()


@torch.no_grad()
def retrieval_accuracy(encoder, traces):
    encoder.eval()
    za, zb = encoder(augment(traces)), encoder(augment(traces))
    encoder.train()
    return ((za @ zb.T).argmax(1) == torch.arange(len(traces))).float().mean().item()


def train(steps=120, batch_size=48):
    bank, held_out = gesture_bank(500), gesture_bank(80)
    encoder = GestureEncoder()
    optimizer = optim.Adam(encoder.parameters(), lr=1e-3)
    for step in range(steps):
        idx = torch.randperm(len(bank))[:batch_size]
        za, zb = encoder(augment(bank[idx])), encoder(augment(bank[idx]))
        loss = info_nce(za, zb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"{step:4d} loss {loss.item():.4f} retrieval {retrieval_accuracy(encoder, held_out):.3f}")
    return encoder


if __name__ == "__main__":
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    train()
