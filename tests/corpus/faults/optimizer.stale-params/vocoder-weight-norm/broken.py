"""A small dilated convolution stack that predicts the next audio sample of mixed tones."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

SEED = 77
CLIP_LENGTH = 192


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class ToneBank:
    def __init__(self, rng):
        self.rng = rng

    def batch(self, size):
        t = np.arange(CLIP_LENGTH + 1)[None, :]
        wave = np.zeros((size, CLIP_LENGTH + 1))
        for _ in range(2):
            freq = self.rng.uniform(0.02, 0.12, (size, 1))
            phase = self.rng.uniform(0, 2 * np.pi, (size, 1))
            wave += np.sin(2 * np.pi * freq * t + phase)
        wave += 0.05 * self.rng.standard_normal(wave.shape)
        wave = torch.from_numpy(wave).float()
        return wave[:, None, :-1], wave[:, None, 1:]


class CausalLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.left = dilation
        self.filter = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        padded = nn.functional.pad(x, (self.left, 0))
        return x + self.mix(torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded)))


class Vocoder(nn.Module):
    def __init__(self, channels=24, dilations=(1, 2, 4, 8)):
        super().__init__()
        self.inlet = nn.Conv1d(1, channels, 1)
        self.layers = nn.ModuleList(CausalLayer(channels, d) for d in dilations)
        self.outlet = nn.Conv1d(channels, 1, 1)

    def add_weight_norm(self):
        for layer in self.layers:
            weight_norm(layer.filter)
            weight_norm(layer.gate)

    def forward(self, x):
        x = self.inlet(x)
        for layer in self.layers:
            x = layer(x)
        return self.outlet(x)


def train(steps=90):
    set_seed(SEED)
    bank = ToneBank(np.random.default_rng(SEED))
    vocoder = Vocoder()
    optimizer = torch.optim.Adam(vocoder.parameters(), lr=4e-3, betas=(0.9, 0.98))
    vocoder.add_weight_norm()
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.985)
    l1 = nn.L1Loss()

    vocoder.train()
    for step in range(steps):
        past, future = bank.batch(16)
        optimizer.zero_grad()
        loss = l1(vocoder(past)[..., 16:], future[..., 16:])
        loss.backward()
        nn.utils.clip_grad_norm_(vocoder.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step:3d} | L1 {loss.item():.4f} | lr {schedule.get_last_lr()[0]:.2e}")

    vocoder.eval()
    with torch.no_grad():
        past, future = bank.batch(32)
        print(f"held-out L1 {l1(vocoder(past)[..., 16:], future[..., 16:]).item():.4f}")


if __name__ == "__main__":
    train()
