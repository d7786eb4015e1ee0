"""Train a tiny LM on arithmetic-like progressions. Usage: train.py [--steps N] [--lr LR]"""
import argparse
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int = 24
    context: int = 24
    width: int = 48
    num_heads: int = 3
    num_layers: int = 2


def progressions(n: int, cfg: ModelConfig, rng: np.random.Generator) -> Tensor:
    """Rows walk through the vocabulary with a constant stride; one step in six is replaced by noise."""
    start = rng.integers(0, cfg.vocab_size, size=(n, 1))
    stride = rng.choice([1, 2, 5, 7], size=(n, 1))
    rows = (start + stride * np.arange(cfg.context + 1)) % cfg.vocab_size
    noise = rng.random(rows.shape) < 1 / 6
    rows[noise] = rng.integers(0, cfg.vocab_size, size=int(noise.sum()))
    return torch.from_numpy(rows)


class Attention(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.num_heads = cfg.num_heads
        self.head_dim = cfg.width // cfg.num_heads
        self.to_q = nn.Linear(cfg.width, cfg.width)
        self.to_k = nn.Linear(cfg.width, cfg.width)
        self.to_v = nn.Linear(cfg.width, cfg.width)
        self.merge = nn.Linear(cfg.width, cfg.width)
        visible = torch.tril(torch.ones(cfg.context, cfg.context))
        self.register_buffer("visible", visible, persistent=False)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.num_heads, self.head_dim)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        length = x.size(1)
        q, k, v = self._heads(self.to_q(x)), self._heads(self.to_k(x)), self._heads(self.to_v(x))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.head_dim**-0.5
        scores = scores.masked_fill(self.visible[:length, :length] == 0, float("-inf"))
        mixed = torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)
        return self.merge(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(cfg)
        self.feedforward = nn.Sequential(
            nn.Linear(cfg.width, 2 * cfg.width), nn.SiLU(), nn.Linear(2 * cfg.width, cfg.width)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.feedforward(self.norms[1](x))


class ProgressionLM(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.width)
        self.positions = nn.Parameter(0.02 * torch.randn(cfg.context, cfg.width))
        self.layers = nn.Sequential(*[Layer(cfg) for _ in range(cfg.num_layers)])
        self.norm = nn.LayerNorm(cfg.width)
        self.readout = nn.Linear(cfg.width, cfg.vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.tokens(ids) + self.positions[: ids.size(1)]
        return self.readout(self.norm(self.layers(hidden)))


def lm_loss(model: nn.Module, rows: Tensor) -> Tensor:
    logits = model(rows[:, :-1])
    return nn.functional.cross_entropy(logits.transpose(1, 2), rows[:, 1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    cfg = ModelConfig()
    train_set, valid_rows = TensorDataset(progressions(1600, cfg, rng)), progressions(64, cfg, rng)
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = ProgressionLM(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps, eta_min=0.1 * args.lr)

    step = 0
    while step < args.steps:
        for (rows,) in loader:
            model.train()
            optimizer.zero_grad()
            loss = lm_loss(model, rows)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            scheduler.step()
            step += 1
            if step % 30 == 0:
                model.eval()
                with torch.no_grad():
                    valid = lm_loss(model, valid_rows)
                print(f"step={step} train={loss.item():.4f} valid={valid.item():.4f}")
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
