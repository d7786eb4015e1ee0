import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fix_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def glyphs(n):
    g = torch.Generator().manual_seed(81)
    a = torch.rand(n, 4, generator=g) * 2 - 1
    basis = torch.randn(4, 100, generator=g)
    x = torch.tanh(a @ basis) + 0.05 * torch.randn(n, 100, generator=g)
    return x / x.std()


class VAE(nn.Module):
    def __init__(self, d=100, h=64, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.SiLU(), nn.Linear(h, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, h), nn.SiLU(), nn.Linear(h, d))

    def forward(self, x):
        mu, logvar = self.enc(x).float().chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z).float(), mu, logvar


def elbo(x, recon, mu, logvar, beta=0.05):
    rec = (recon - x).pow(2).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
    return rec + beta * kl / x.shape[-1]


fix_seeds(81)
loader = DataLoader(TensorDataset(glyphs(1280)), batch_size=64, shuffle=True)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**48)
for epoch in range(4):
    vae.train()
    total = 0.0
    for (x,) in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = elbo(x, *vae(x))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
