"""Small denoising diffusion model for 2-d spirals."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

T = 50
BATCH = 64
GRAD_ACCUM_STEPS = 4
MAX_UPDATES = 90


def spirals(n, generator):
    u = torch.rand(n, generator=generator).sqrt() * 3 * math.pi
    xy = torch.stack([u * torch.cos(u), u * torch.sin(u)], dim=1)
    xy = xy / xy.std()
    return xy + 0.02 * torch.randn(n, 2, generator=generator)


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, -4, width // 2)))

    def forward(self, t):
        a = t[:, None].float() * self.freq
        return torch.cat([a.sin(), a.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Sequential(TimeEmbedding(32), nn.Linear(32, width), nn.SiLU())
        self.inp = nn.Linear(2, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for layer in self.hidden:
            h = h + nn.functional.silu(layer(h))
        return self.out(h)


class Diffusion:
    def __init__(self):
        betas = torch.linspace(1e-3, 0.12, T)
        self.alpha_bar = torch.cumprod(1 - betas, 0)

    def noised(self, x0, t, eps):
        ab = self.alpha_bar[t][:, None]
        return ab.sqrt() * x0 + (1 - ab).sqrt() * eps

    def loss(self, model, x0):
        t = torch.randint(0, T, (len(x0),))
        eps = torch.randn_like(x0)
        return nn.functional.mse_loss(model(self.noised(x0, t, eps), t), eps)


def main():
    torch.manual_seed(17)
    g = torch.Generator().manual_seed(17)
    loader = DataLoader(TensorDataset(spirals(4096, g)), batch_size=BATCH, shuffle=True, drop_last=True, generator=g)
    model, diffusion = Denoiser(), Diffusion()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    updates, running = 0, 0.0
    while updates < MAX_UPDATES:
        for i, (x0,) in enumerate(loader):
            loss = diffusion.loss(model, x0)
            loss.backward()
            running += loss.item() / GRAD_ACCUM_STEPS
            if (i + 1) % GRAD_ACCUM_STEPS == 0:
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
                if updates % 10 == 0:
                    print(f"update {updates:3d} eps-mse {running / 10:.4f}")
                    running = 0.0
                if updates == MAX_UPDATES:
                    break


if __name__ == "__main__":
    main()
