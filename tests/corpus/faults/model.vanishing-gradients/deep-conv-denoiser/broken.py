"""One-dimensional signal denoiser: many small convolution blocks one after another."""
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


@dataclass
class Options:
    channels: int = 16
    blocks: int = 16
    samples: int = 48
    batch: int = 24
    steps: int = 80
    lr: float = 2e-3
    seed: int = 27
    log: list = field(default_factory=list)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=1)
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.conv(x))


class Denoiser(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.enter = nn.Conv1d(1, options.channels, 5, padding=2)
        self.blocks = nn.Sequential(*(Block(options.channels) for _ in range(options.blocks)))
        self.leave = nn.Conv1d(options.channels, 1, 1)

    def forward(self, noisy):
        return self.leave(self.blocks(self.enter(noisy)))


def signals(options, rng):
    t = np.linspace(0, 1, options.samples)
    frequency = rng.uniform(1, 4, size=(options.batch, 1))
    phase = rng.uniform(0, 2 * np.pi, size=(options.batch, 1))
    clean = np.sqrt(2) * np.sin(2 * np.pi * frequency * t + phase)
    noisy = (clean + rng.normal(0, 0.5, size=clean.shape)) / np.sqrt(1.25)
    return (torch.tensor(a[:, None], dtype=torch.float32) for a in (noisy, clean))


def train(options):
    np.random.seed(options.seed)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    model = Denoiser(options)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps, eta_min=options.lr / 20)
    for step in range(options.steps):
        noisy, clean = signals(options, rng)
        loss = torch.mean((model(noisy) - clean) ** 2)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        options.log.append(loss.item())
        if step % 10 == 9:
            print(f"step {step + 1}: mean squared error {np.mean(options.log[-10:]):.4f}")


if __name__ == "__main__":
    train(Options())
