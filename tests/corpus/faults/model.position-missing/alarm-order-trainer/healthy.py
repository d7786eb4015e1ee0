"""Which came first? Classify event logs by the order in which two alarms were raised."""

import math
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class TrainConfig:
    num_events: int = 40
    length: int = 16
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    batch_size: int = 64
    epochs: int = 8
    lr: float = 1e-3
    seed: int = 5


def build_logs(cfg: TrainConfig, n: int) -> TensorDataset:
    g = torch.Generator().manual_seed(cfg.seed)
    x = torch.randint(4, cfg.num_events, (n, cfg.length), generator=g)
    y = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        first, second = torch.randperm(cfg.length, generator=g)[:2].sort().values.tolist()
        swap = int(torch.randint(2, (1,), generator=g))
        x[i, first], x[i, second] = (2, 1) if swap else (1, 2)
        y[i] = swap
    return TensorDataset(x, y)


class SinusoidalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 128):
        super().__init__()
        t = torch.arange(max_len).unsqueeze(1)
        freq = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(t * freq)
        table[:, 1::2] = torch.cos(t * freq)
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(1)]


class Attention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.to_qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).flatten(2))


class EncoderBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = Attention(d_model, n_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.ff(self.ln2(x))


class LogClassifier(nn.Module):
    def __init__(self, cfg: TrainConfig):
        super().__init__()
        self.embed = nn.Embedding(cfg.num_events, cfg.d_model)
        self.positions = SinusoidalEncoding(cfg.d_model)
        self.blocks = nn.ModuleList(EncoderBlock(cfg.d_model, cfg.n_heads) for _ in range(cfg.n_layers))
        self.norm = nn.LayerNorm(cfg.d_model)
        self.head = nn.Linear(cfg.d_model, 2)

    def forward(self, events: Tensor) -> Tensor:
        x = self.embed(events)
        x = self.positions(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        self.model = LogClassifier(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        g = torch.Generator().manual_seed(cfg.seed)
        train, val = random_split(build_logs(cfg, 1500), [1300, 200], generator=g)
        self.train_loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=100)

    def train_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for events, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(events), label)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(label)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        hits = sum((self.model(events).argmax(1) == label).sum().item() for events, label in self.val_loader)
        return hits / len(self.val_loader.dataset)

    def fit(self) -> None:
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            print(f"epoch {epoch} loss {loss:.4f} val_acc {self.validate():.3f}")


if __name__ == "__main__":
    config = TrainConfig()
    random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
