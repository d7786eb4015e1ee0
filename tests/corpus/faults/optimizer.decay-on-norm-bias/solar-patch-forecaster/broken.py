"""Patch transformer for solar plants: four days of hourly output in, the next six hours out."""

import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ModelConfig:
    context: int = 96
    patch: int = 8
    horizon: int = 6
    width: int = 48
    heads: int = 4
    layers: int = 2


@dataclass
class TrainConfig:
    steps: int = 160
    batch_size: int = 32
    lr: float = 1e-3
    weight_decay: float = 0.05
    eval_every: int = 40
    model: ModelConfig = field(default_factory=ModelConfig)


def seed_everything(seed=123):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def plants(num_plants, hours, rng):
    t = np.arange(hours)
    sun = np.maximum(0, np.sin(2 * np.pi * (t % 24 - 6) / 24))
    rows = []
    for _ in range(num_plants):
        clouds = np.zeros(hours)
        for i in range(1, hours):
            clouds[i] = 0.95 * clouds[i - 1] + rng.normal(0, 0.1)
        rows.append(rng.uniform(0.8, 1.2) * sun * np.exp(-np.abs(clouds)))
    return torch.tensor(np.stack(rows), dtype=torch.float32)


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.proj = nn.Linear(cfg.width, cfg.width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.width)
        self.attn = Attention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.width)
        self.mlp = nn.Sequential(nn.Linear(cfg.width, 2 * cfg.width), nn.GELU(), nn.Linear(2 * cfg.width, cfg.width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class PatchForecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Linear(cfg.patch, cfg.width)
        self.position = nn.Parameter(0.02 * torch.randn(1, cfg.context // cfg.patch, cfg.width))
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.layers)])
        self.ln_f = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.horizon)

    def forward(self, past):
        x = self.embed(past.unfold(1, self.cfg.patch, self.cfg.patch)) + self.position
        return self.head(self.ln_f(self.blocks(x)).mean(dim=1))

    def configure_optimizer(self, lr, weight_decay):
        params = [p for p in self.parameters() if p.requires_grad]
        return torch.optim.AdamW(params, lr=lr, betas=(0.9, 0.95), weight_decay=weight_decay)


def draw(series, cfg, count, generator):
    rows = torch.randint(0, series.size(0), (count,), generator=generator)
    starts = torch.randint(0, series.size(1) - cfg.context - cfg.horizon, (count,), generator=generator)
    whole = torch.stack([series[r, s : s + cfg.context + cfg.horizon] for r, s in zip(rows, starts)])
    return whole[:, : cfg.context], whole[:, cfg.context :]


def main():
    seed_everything()
    cfg = TrainConfig()
    series = plants(12, 24 * 60, np.random.default_rng(0))
    cut = int(0.8 * series.size(1))
    series = (series - series[:, :cut].mean()) / series[:, :cut].std()
    generator = torch.Generator().manual_seed(1)
    val = draw(series[:, cut:], cfg.model, 128, generator)

    model = PatchForecaster(cfg.model)
    optimizer = model.configure_optimizer(cfg.lr, cfg.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=cfg.lr * 3, total_steps=cfg.steps)

    for step in range(cfg.steps):
        past, future = draw(series[:, :cut], cfg.model, cfg.batch_size, generator)
        loss = F.smooth_l1_loss(model(past), future)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % cfg.eval_every == 0:
            model.eval()
            with torch.no_grad():
                val_loss = F.smooth_l1_loss(model(val[0]), val[1])
            model.train()
            print(f"step {step + 1}: train {loss.item():.4f} val {val_loss.item():.4f}")


if __name__ == "__main__":
    main()
