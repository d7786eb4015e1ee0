"""A scalar field from scattered samples: frozen Fourier features, sine layers, zero-initialised residual branches."""
import math

import torch
from torch import nn


class FourierFeatures(nn.Module):
    """Random frequencies that are drawn once and never trained (Tancik et al. 2020)."""

    def __init__(self, dim, count, scale):
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(dim, count) * scale, requires_grad=False)

    def forward(self, x):
        phase = 2 * math.pi * x @ self.frequencies
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class SineLayer(nn.Module):
    def __init__(self, width_in, width_out, omega):
        super().__init__()
        self.omega = omega
        self.linear = nn.Linear(width_in, width_out)
        bound = math.sqrt(6 / width_in) / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.linear(x))


class ResidualSine(nn.Module):
    def __init__(self, width, omega):
        super().__init__()
        self.inner = SineLayer(width, width, omega)
        self.outer = nn.Linear(width, width)
        # every block begins as the identity
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x):
        return x + self.outer(self.inner(x))


class Field(nn.Module):
    def __init__(self, width=64, blocks=5, omega=6.0):
        super().__init__()
        self.features = FourierFeatures(2, width // 2, 0.7)
        self.first = SineLayer(width, width, omega)
        self.blocks = nn.Sequential(*[ResidualSine(width, omega) for _ in range(blocks)])
        self.readout = nn.Linear(width, 2)

    def forward(self, x):
        mean, log_var = self.readout(self.blocks(self.first(self.features(x)))).unbind(-1)
        return mean, log_var.clamp(-6, 4)


def field(x):
    return torch.sin(3 * x[:, 0]) * torch.cos(2 * x[:, 1]) + 0.3 * x[:, 0] * x[:, 1]


def sample(n, generator):
    x = torch.rand(n, 2, generator=generator) * 2 - 1
    noise = 0.05 + 0.15 * (x[:, 0] > 0)
    return x, field(x) + noise * torch.randn(n, generator=generator)


def gaussian_nll(mean, log_var, target):
    return (0.5 * (log_var + (target - mean).square() * torch.exp(-log_var))).mean()


torch.manual_seed(19)
generator = torch.Generator().manual_seed(19)
x, y = sample(2000, generator)
vx, vy = sample(400, generator)
scale = y.std()
y, vy = (y - y.mean()) / scale, (vy - y.mean()) / scale

model = Field()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200, eta_min=1e-5)

for step in range(200):
    model.train()
    batch = torch.randint(len(x), (128,), generator=generator)
    mean, log_var = model(x[batch])
    loss = gaussian_nll(mean, log_var, y[batch])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    optimizer.step()
    schedule.step()
    if step % 40 == 39:
        model.eval()
        with torch.no_grad():
            mean, log_var = model(vx)
            rmse = (mean - vy).square().mean().sqrt()
        print(f"step {step + 1:3d} nll {loss.item():+.3f} val rmse {rmse:.3f} val nll {gaussian_nll(mean, log_var, vy):+.3f}")
