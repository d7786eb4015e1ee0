"""Hourly traffic forecasting with a dilated causal conv net and our own AdamW (we need to patch it later for sharding)."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class AdamW:
    """Decoupled weight decay Adam, Loshchilov & Hutter (2019), algorithm 2."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        self.params = [p for p in params if p.requires_grad]
        self.lr = lr
        self.beta1, self.beta2 = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.t = 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, m, v in zip(self.params, self.m, self.v):
            if p.grad is None:
                continue
            self.t += 1
            if p.ndim > 1:
                p.mul_(1 - self.lr * self.weight_decay)
            m.mul_(self.beta1).add_(p.grad, alpha=1 - self.beta1)
            v.mul_(self.beta2).addcmul_(p.grad, p.grad, value=1 - self.beta2)
            m_hat = m / (1 - self.beta1**self.t)
            v_hat = v / (1 - self.beta2**self.t)
            p.addcdiv_(m_hat, v_hat.sqrt().add_(self.eps), value=-self.lr)


class CausalConv(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(cin, cout, 3, dilation=dilation)
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        return self.skip(x) + F.gelu(self.conv(F.pad(x, (self.pad, 0))))


class Forecaster(nn.Module):
    def __init__(self, width=32, horizon=6):
        super().__init__()
        self.stack = nn.Sequential(*[CausalConv(1 if i == 0 else width, width, 2**i) for i in range(4)])
        self.head = nn.Linear(width, horizon)

    def forward(self, x):
        return self.head(self.stack(x.unsqueeze(1))[:, :, -1])


def traffic(hours, rng):
    t = np.arange(hours)
    daily = np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(4 * np.pi * t / 24 + 1)
    weekly = 0.4 * np.sin(2 * np.pi * t / 168)
    return (daily + weekly + 0.15 * rng.standard_normal(hours)).astype(np.float32)


def windows(series, context, horizon):
    w = torch.from_numpy(series).unfold(0, context + horizon, 1)
    return w[:, :context], w[:, context:]


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    series = traffic(1800, np.random.default_rng(6))
    cut = 1500
    series = (series - series[:cut].mean()) / series[:cut].std()
    x, y = windows(series[:cut], 36, 6)
    vx, vy = windows(series[cut:], 36, 6)
    model = Forecaster()
    optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for step in range(150):
        idx = torch.randint(len(x), (48,))
        loss = F.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                val = F.mse_loss(model(vx), vy).item()
            model.train()
            print(f"step {step + 1} train {loss.item():.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
