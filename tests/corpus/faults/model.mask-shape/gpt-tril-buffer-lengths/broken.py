"""Small decoder that learns uneven counting sequences; batches are grouped by length."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 32
    context: int = 24
    width: int = 32
    heads: int = 2
    layers: int = 2
    batch: int = 16
    steps: int = 70
    lr: float = 2e-3
    seed: int = 5


class CausalAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.proj = nn.Linear(cfg.width, cfg.width)
        self.register_buffer("visible", torch.tril(torch.ones(cfg.context, cfg.context, dtype=torch.bool)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.qkv(x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~self.visible, float("-inf"))
        y = scores.softmax(dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.attn = CausalAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.wte = nn.Embedding(cfg.vocab, cfg.width)
        self.wpe = nn.Embedding(cfg.context, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.ln = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocab)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.2)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1), device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


def sample_group(cfg, step):
    """Sequences that count up by a stride or one more; every so often the group holds shorter documents."""
    length = cfg.context if step % 20 != 17 else cfg.context - 7
    start = torch.randint(0, cfg.vocab, (cfg.batch, 1))
    stride = torch.randint(1, 6, (cfg.batch, 1))
    advance = stride + torch.randint(0, 2, (cfg.batch, length + 1))
    ids = (start + advance.cumsum(1)) % cfg.vocab
    return ids[:, :-1], ids[:, 1:]


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    model = Decoder(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.0)
    for step in range(cfg.steps):
        ids, targets = sample_group(cfg, step)
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 10 == 0:
            print(f"step {step:3d} length {ids.size(1)} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
