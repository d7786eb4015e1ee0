"""Remaining useful life of engines from windows of sensor readings, with a small pre-norm encoder."""

import math
import random

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

SENSORS, WINDOW = 8, 24


def simulate(engines: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    gain = np.random.default_rng(42).normal(size=(SENSORS,))
    xs, ys = [], []
    for _ in range(engines):
        life = rng.integers(60, 140)
        t = np.arange(life)
        wear = np.exp(4.0 * (t / life - 1.0))
        readings = wear[:, None] * gain + 0.15 * rng.normal(size=(life, SENSORS))
        for end in rng.integers(WINDOW, life, size=6):
            xs.append(readings[end - WINDOW : end])
            ys.append((life - end) / 60.0)
    return torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(ys, dtype=torch.float32)


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        nn.init.xavier_uniform_(self.up.weight)
        nn.init.xavier_uniform_(self.down.weight)
        nn.init.constant_(self.up.bias, 0.0)
        nn.init.constant_(self.down.bias, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.norm_attn = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_ff = nn.LayerNorm(width)
        self.ff = FeedForward(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm_attn(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm_ff(x))


def sinusoid(length: int, width: int) -> Tensor:
    pos = torch.arange(length).unsqueeze(1)
    div = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    table = torch.zeros(length, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
    return table


class LifeModel(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4, hidden: int = 96, depth: int = 3):
        super().__init__()
        self.project = nn.Linear(SENSORS, width)
        self.register_buffer("positions", sinusoid(WINDOW, width))
        self.layers = nn.ModuleList([EncoderLayer(width, heads, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.project(x) + self.positions
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h).mean(dim=1)).squeeze(-1)


def rmse(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    squares, count = 0.0, 0
    with torch.inference_mode():
        for x, y in loader:
            squares += ((model(x) - y) ** 2).sum().item()
            count += y.numel()
    return math.sqrt(squares / count)


if __name__ == "__main__":
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    x_train, y_train = simulate(180, seed=1)
    x_val, y_val = simulate(40, seed=2)
    mu, sigma = x_train.mean((0, 1)), x_train.std((0, 1))
    train_loader = DataLoader(TensorDataset((x_train - mu) / sigma, y_train), batch_size=54, shuffle=True)
    val_loader = DataLoader(TensorDataset((x_val - mu) / sigma, y_val), batch_size=120)

    model = LifeModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        model.train()
        seen = []
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seen.append(loss.item())
        print(f"epoch {epoch} mse {np.mean(seen):.4f} val rmse {rmse(model, val_loader):.4f}")
