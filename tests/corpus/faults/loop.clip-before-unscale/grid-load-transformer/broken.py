"""Hour-ahead load forecasting with a small transformer encoder, mixed precision."""

import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    context: int = 24
    d_model: int = 32
    heads: int = 4
    layers: int = 2
    dropout: float = 0.1
    batch_size: int = 32
    lr: float = 2e-3
    epochs: int = 4
    max_norm: float = 1.0
    seed: int = 3


def load_series(cfg: Config, hours: int = 1100):
    rng = np.random.default_rng(cfg.seed)
    t = np.arange(hours)
    load = 2.0 * np.sin(2 * np.pi * t / 24) + 0.7 * np.sin(2 * np.pi * t / 168) + 0.2 * rng.standard_normal(hours)
    split = int(hours * 0.85)
    mean, std = load[:split].mean(), load[:split].std()
    load = ((load - mean) / std).astype(np.float32)

    def windows(a):
        x = np.lib.stride_tricks.sliding_window_view(a, cfg.context + 1).copy()
        x = torch.from_numpy(x)
        return TensorDataset(x[:, :-1, None], x[:, -1])

    return windows(load[:split]), windows(load[split:])


class LoadTransformer(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.inp = nn.Linear(1, cfg.d_model)
        pos = torch.arange(cfg.context).unsqueeze(1)
        div = torch.exp(torch.arange(0, cfg.d_model, 2) * (-math.log(10000.0) / cfg.d_model))
        pe = torch.zeros(cfg.context, cfg.d_model)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)
        layer = nn.TransformerEncoderLayer(cfg.d_model, cfg.heads, 4 * cfg.d_model, cfg.dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, norm=nn.LayerNorm(cfg.d_model), enable_nested_tensor=False)
        self.head = nn.Linear(cfg.d_model, 1)

    def forward(self, x):
        h = self.encoder(self.inp(x) + self.pe)
        return self.head(h[:, -1]).squeeze(-1)


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        train, val = load_series(cfg)
        self.train_loader = DataLoader(train, cfg.batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val, 128)
        self.model = LoadTransformer(cfg).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, cfg.epochs * len(self.train_loader), eta_min=cfg.lr / 10
        )
        self.scaler = torch.amp.GradScaler(self.device.type, init_scale=2.0**12)
        self.loss_fn = nn.MSELoss()

    def train_step(self, x, y):
        x, y = x.to(self.device), y.to(self.device)
        self.optimizer.zero_grad()
        with torch.autocast(self.device.type, dtype=torch.float16):
            pred = self.model(x)
        loss = self.loss_fn(pred.float(), y)
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in self.val_loader:
            pred = self.model(x.to(self.device))
            total += self.loss_fn(pred, y.to(self.device)).item() * len(y)
            n += len(y)
        return total / n

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            losses = [self.train_step(x, y) for x, y in self.train_loader]
            print(f"[{epoch}] train {np.mean(losses):.4f} val {self.evaluate():.4f} scale {self.scaler.get_scale():.0f}")


if __name__ == "__main__":
    config = Config()
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
