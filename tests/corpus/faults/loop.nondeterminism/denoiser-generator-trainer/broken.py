"""Denoising transformer for smooth curves. The run is meant to be bit-for-bit repeatable."""
import math
import os
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class RunConfig:
    seed: int = 515
    points: int = 20
    dim: int = 32
    noise: float = 0.5
    batch_size: int = 32
    epochs: int = 3
    lr: float = 2e-3


def curves(n, points, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 2 * math.pi, points)
    amplitude = torch.randn(n, 3, 1, generator=g)
    phase = 2 * math.pi * torch.rand(n, 3, 1, generator=g)
    order = torch.arange(1, 4).view(1, 3, 1)
    return (amplitude * torch.sin(order * t + phase)).sum(1) / 1.22


class CurveDenoiser(nn.Module):
    def __init__(self, points, dim):
        super().__init__()
        self.inp = nn.Linear(1, dim)
        self.pos = nn.Parameter(0.3 * torch.randn(points, dim))
        layer = nn.TransformerEncoderLayer(
            dim, nhead=4, dim_feedforward=2 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, noisy):
        return self.out(self.encoder(self.inp(noisy.unsqueeze(-1)) + self.pos)).squeeze(-1)


class DenoisingTrainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        torch.use_deterministic_algorithms(True)
        self.cfg = cfg
        self.model = CurveDenoiser(cfg.points, cfg.dim)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.order_rng = torch.Generator().manual_seed(cfg.seed)
        self.noise_rng = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
        data = TensorDataset(curves(960, cfg.points, seed=1))
        self.loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=True, generator=self.order_rng)
        clean = curves(128, cfg.points, seed=2)
        fixed = torch.Generator().manual_seed(0)
        self.valid = clean, clean + cfg.noise * torch.randn(clean.shape, generator=fixed)

    def corrupt(self, clean):
        return clean + self.cfg.noise * torch.randn(clean.shape, generator=self.noise_rng)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for (clean,) in self.loader:
                loss = nn.functional.mse_loss(self.model(self.corrupt(clean)), clean)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}  train mse {total / len(self.loader):.7f}  valid mse {self.validate():.7f}")
        norm = torch.cat([p.detach().flatten() for p in self.model.parameters()]).norm()
        print(f"final weight norm {norm.item():.9f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        clean, noisy = self.valid
        return nn.functional.mse_loss(self.model(noisy), clean).item()


if __name__ == "__main__":
    config = RunConfig()
    print(f"config {asdict(config)}, {os.cpu_count()} cores")
    DenoisingTrainer(config).fit()
