"""Byte model for firmware images: grouped records, rotary attention, no cache."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    vocab: int = 40
    dim: int = 64
    heads: int = 4
    depth: int = 2
    block: int = 36
    batch: int = 24
    steps: int = 150
    lr: float = 2e-3
    seed: int = 90


def firmware(length, rng, vocab):
    """Records of six bytes: a type, four payload bytes and a checksum byte that repeats the type's partner."""
    out = []
    while len(out) < length:
        kind = int(rng.integers(8))
        payload = (rng.integers(0, 3, size=4) + 8 + 4 * kind) % vocab
        out += [kind, *payload.tolist(), (kind * 3 + 1) % 8]
    return torch.tensor(out[:length])


def precompute(head_dim, length, base=10000.0):
    inv_freq = base ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.arange(length).float()[:, None] * inv_freq[None, :]
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos[None, None], sin[None, None]
    return rotate(q, cos, sin), rotate(k, cos, sin)


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.pre = nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.proj = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.mid = nn.LayerNorm(cfg.dim)
        self.ffn = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.pre(x)).split(c, dim=-1))
        q, k = apply_rotary(q, k, cos[:t], sin[:t])
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ffn(self.mid(x))


class ByteModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.bytes = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.depth))
        self.final = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        cos, sin = precompute(cfg.dim // cfg.heads, cfg.block)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, ids, targets=None):
        x = self.bytes(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = self.head(self.final(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
        return logits, loss


def sample_batch(data, cfg):
    ix = np.random.randint(0, len(data) - cfg.block - 1, size=cfg.batch)
    rows = torch.stack([data[i : i + cfg.block + 1] for i in ix])
    return rows[:, :-1], rows[:, 1:]


def main():
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    train, valid = firmware(18000, rng, cfg.vocab), firmware(3000, rng, cfg.vocab)
    model = ByteModel(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95))
    for step in range(1, cfg.steps + 1):
        ids, targets = sample_batch(train, cfg)
        _, loss = model(ids, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            model.eval()
            with torch.no_grad():
                val = np.mean([model(*sample_batch(valid, cfg))[1].item() for _ in range(4)])
            model.train()
            print(f"step {step:4d} train {loss.item():.3f} valid {val:.3f}")


if __name__ == "__main__":
    main()
