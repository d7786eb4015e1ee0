"""Denoising diffusion on the swiss roll in mixed precision."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, STEPS_T, EPOCHS, BATCH = 5, 50, 8, 128
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def swiss_roll(count):
    t = 1.5 * np.pi * (1 + 2 * np.random.rand(count))
    points = np.stack([t * np.cos(t), t * np.sin(t)], 1) + 0.3 * np.random.randn(count, 2)
    return torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)


class Diffusion:
    def __init__(self, steps):
        betas = torch.linspace(1e-3, 0.12, steps, device=DEVICE)
        self.alpha_bar = torch.cumprod(1 - betas, 0)
        self.steps = steps

    def corrupt(self, x):
        t = torch.randint(0, self.steps, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        a = self.alpha_bar[t].unsqueeze(1)
        return a.sqrt() * x + (1 - a).sqrt() * noise, t, noise


class Denoiser(nn.Module):
    def __init__(self, steps, width=96):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.inp = nn.Linear(2, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(3)
        )
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def main():
    seed_all(SEED)
    loader = DataLoader(TensorDataset(swiss_roll(2048)), batch_size=BATCH, shuffle=True, drop_last=True)
    diffusion = Diffusion(STEPS_T)
    model = Denoiser(STEPS_T).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**12)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for (x,) in loader:
            x = x.to(DEVICE)
            optimizer.zero_grad(set_to_none=True)
            noisy, t, noise = diffusion.corrupt(x)
            with torch.autocast(DEVICE, dtype=torch.float16):
                predicted = model(noisy, t)
            loss = nn.functional.mse_loss(predicted.float(), noise)
            scaler.scale(loss).backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
