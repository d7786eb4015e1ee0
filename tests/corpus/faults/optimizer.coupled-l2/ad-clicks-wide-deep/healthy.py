from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    cardinalities: tuple[int, ...] = (40, 25, 12)
    numeric: int = 5
    emb_dim: int = 6
    hidden: tuple[int, ...] = (48, 24)
    lr: float = 3e-3
    weight_decay: float = 0.02
    batch_size: int = 64
    epochs: int = 3
    seed: int = 77
    log_every: int = 15
    history: list[float] = field(default_factory=list)


class Impressions(Dataset):
    def __init__(self, n: int, cfg: Settings, seed: int):
        world = np.random.default_rng(cfg.seed)
        effects = [world.normal(0, 1.0, c) for c in cfg.cardinalities]
        coef = world.normal(0, 0.8, cfg.numeric)
        rng = np.random.default_rng(seed)
        cats = np.stack([rng.integers(0, c, n) for c in cfg.cardinalities], 1)
        nums = rng.standard_normal((n, cfg.numeric))
        logit = sum(e[cats[:, j]] for j, e in enumerate(effects)) + nums @ coef
        click = rng.random(n) < 1 / (1 + np.exp(-1.5 * logit))
        self.cats = torch.from_numpy(cats)
        self.nums = torch.from_numpy(nums).float()
        self.click = torch.from_numpy(click).float()

    def __len__(self) -> int:
        return len(self.click)

    def __getitem__(self, i: int):
        return self.cats[i], self.nums[i], self.click[i]


class WideAndDeep(nn.Module):
    def __init__(self, cfg: Settings):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, cfg.emb_dim) for c in cfg.cardinalities)
        for t in self.tables:
            nn.init.normal_(t.weight, std=0.1)
        self.wide = nn.Linear(cfg.numeric, 1)
        sizes = (cfg.emb_dim * len(cfg.cardinalities) + cfg.numeric, *cfg.hidden)
        deep: list[nn.Module] = []
        for a, b in itertools.pairwise(sizes):
            deep += [nn.Linear(a, b), nn.LayerNorm(b), nn.SiLU()]
        self.deep = nn.Sequential(*deep, nn.Linear(sizes[-1], 1))

    def forward(self, cats: Tensor, nums: Tensor) -> Tensor:
        e = [t(cats[:, j]) for j, t in enumerate(self.tables)]
        return (self.deep(torch.cat([*e, nums], 1)) + self.wide(nums)).squeeze(1)


def make_optimizer(model: nn.Module, cfg: Settings) -> torch.optim.Optimizer:
    decayed, rest = [], []
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            (decayed if isinstance(module, nn.Linear) and name == "weight" else rest).append(p)
    groups = [{"params": decayed, "weight_decay": cfg.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.99))


def train(cfg: Settings) -> None:
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    loader = DataLoader(Impressions(2400, cfg, 1), cfg.batch_size, shuffle=True, drop_last=True)
    model = WideAndDeep(cfg)
    opt = make_optimizer(model, cfg)
    bce = nn.BCEWithLogitsLoss()
    step = 0
    for _ in range(cfg.epochs):
        for cats, nums, click in loader:
            opt.zero_grad()
            loss = bce(model(cats, nums), click)
            loss.backward()
            opt.step()
            cfg.history.append(loss.item())
            step += 1
            if step % cfg.log_every == 0:
                print(f"{step:4d} logloss {np.mean(cfg.history[-cfg.log_every :]):.4f}")
    held = Impressions(600, cfg, 2)
    model.eval()
    with torch.no_grad():
        print(f"held-out logloss {bce(model(held.cats, held.nums), held.click).item():.4f}")


if __name__ == "__main__":
    train(Settings())
