"""Denoising diffusion on two moons. The target is fresh noise every step, so the loss flattens early and stays noisy."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)

T = 100
betas = torch.linspace(1e-4, 0.05, T)
alpha_bar = torch.cumprod(1 - betas, dim=0)


def moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    pts = torch.stack([x - 0.5, y - 0.25], 1) * torch.tensor([1.15, 2.0])
    return pts + 0.05 * torch.randn(n, 2)


def time_embedding(t, dim=32):
    freqs = torch.exp(-math.log(1000.0) * torch.arange(dim // 2) / (dim // 2))
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.sin(), args.cos()], dim=1)


class NoisePredictor(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.inp = nn.Linear(2, width)
        self.time = nn.Linear(32, width)
        self.mid = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.out = nn.Linear(width, 2)
        # a zero-initialised last layer is usual here: the network starts by predicting no noise at all
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        h = self.inp(x) + self.time(time_embedding(t))
        for layer in self.mid:
            h = h + F.silu(layer(h))
        return self.out(h)


net = NoisePredictor()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
smooth = None
for it in range(1, 301):
    x0 = moons(256)
    t = torch.randint(0, T, (256,))
    eps = torch.randn_like(x0)
    ab = alpha_bar[t].unsqueeze(1)
    xt = ab.sqrt() * x0 + (1 - ab).sqrt() * eps
    loss = F.mse_loss(net(xt, t), eps)
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
    if it == 1 or it % 50 == 0:
        print(f"iter {it:4d} loss (smoothed) {smooth:.3f}")


@torch.no_grad()
def sample(n):
    net.eval()
    x = torch.randn(n, 2)
    for step in reversed(range(T)):
        t = torch.full((n,), step)
        a = 1 - betas[step]
        x = (x - betas[step] / (1 - alpha_bar[step]).sqrt() * net(x, t)) / a.sqrt()
        if step > 0:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


s = sample(256)
print("sample std", [round(v, 2) for v in s.std(0).tolist()], "data std", [round(v, 2) for v in moons(2048).std(0).tolist()])
