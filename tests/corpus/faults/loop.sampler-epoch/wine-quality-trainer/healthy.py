import os
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class TrainConfig:
    num_features: int = 11
    width: int = 64
    epochs: int = 8
    batch_size: int = 20
    lr: float = 3e-3
    weight_decay: float = 1e-2
    seed: int = 77


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_tables(cfg: TrainConfig):
    rng = np.random.default_rng(cfg.seed)
    x = rng.normal(size=(800, cfg.num_features))
    mix = rng.normal(size=(cfg.num_features, 3)) / np.sqrt(cfg.num_features)
    hidden = np.tanh(x @ mix)
    y = hidden[:, 0] + hidden[:, 1] * hidden[:, 2] + 0.1 * rng.normal(size=800)
    x = (x - x[:640].mean(0)) / x[:640].std(0)
    y = (y - y[:640].mean()) / y[:640].std()
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    return TensorDataset(x[:640], y[:640]), TensorDataset(x[640:], y[640:])


class QualityNet(nn.Module):
    def __init__(self, cfg: TrainConfig):
        super().__init__()
        self.inp = nn.Linear(cfg.num_features, cfg.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(cfg.width), nn.Linear(cfg.width, cfg.width), nn.GELU()) for _ in range(2)
        )
        self.out = nn.Linear(cfg.width, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h).squeeze(-1)


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        self.rank = dist.get_rank()
        train_set, val_set = make_tables(cfg)
        self.sampler = DistributedSampler(train_set, shuffle=True, seed=cfg.seed, drop_last=True)
        self.train_loader = DataLoader(train_set, batch_size=cfg.batch_size, sampler=self.sampler, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=80)
        self.model = DistributedDataParallel(QualityNet(cfg))
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        rest = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": rest, "weight_decay": 0.0}], lr=cfg.lr
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=cfg.epochs * len(self.train_loader))

    def run_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = F.mse_loss(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        losses = [F.mse_loss(self.model.module(x), y).item() for x, y in self.val_loader]
        return sum(losses) / len(losses)

    def fit(self) -> None:
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            train_loss = self.run_epoch()
            val_loss = self.validate()
            if self.rank == 0:
                print(f"epoch {epoch:02d} train {train_loss:.4f} val {val_loss:.4f}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group("gloo", rank=int(os.environ.get("RANK", 0)), world_size=int(os.environ.get("WORLD_SIZE", 1)))
    config = TrainConfig()
    set_seed(config.seed)
    Trainer(config).fit()
    dist.destroy_process_group()
