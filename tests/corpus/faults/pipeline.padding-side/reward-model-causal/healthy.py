import math
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD_ID = 0


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        weights = scores.masked_fill(~allowed, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class RewardModel(nn.Module):
    """Scores a reply with the state of its last token."""

    def __init__(self, vocab: int, dim: int = 48, depth: int = 2, max_len: int = 24):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.attn = nn.ModuleList(Attention(dim, 4) for _ in range(depth))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth))
        self.score = nn.Linear(dim, 1)
        for emb in (self.tok, self.pos):
            nn.init.normal_(emb.weight, std=0.05)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        t = ids.shape[1]
        real = ids != PAD_ID
        causal = torch.tril(torch.ones(t, t, dtype=torch.bool))
        allowed = (causal & real[:, None, :]).unsqueeze(1)
        x = self.tok(ids) + self.pos(torch.arange(t))
        for i, (attn, mlp) in enumerate(zip(self.attn, self.mlp)):
            x = x + attn(self.norms[2 * i](x), allowed)
            x = x + mlp(self.norms[2 * i + 1](x))
        last = x[torch.arange(len(ids)), lengths - 1]
        return self.score(last).squeeze(-1)


def replies(n: int, rng: random.Random):
    rows = []
    for _ in range(n):
        length = rng.randint(4, 20)
        ids = [rng.randint(1, 29) for _ in range(length)]
        quality = sum(1 for i in ids if i <= 6) / length
        rows.append((ids, quality * 4.0 - 0.8))
    return rows


def to_tensors(rows):
    width = max(len(ids) for ids, _ in rows)
    filled = [ids + [PAD_ID] * (width - len(ids)) for ids, _ in rows]
    return torch.tensor(filled), torch.tensor([len(ids) for ids, _ in rows]), torch.tensor([r for _, r in rows])


def train(seed: int = 14, steps: int = 100) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model = RewardModel(vocab=30)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    pool = replies(2000, rng)
    for step in range(steps):
        ids, lengths, reward = to_tensors(rng.sample(pool, 32))
        loss = F.mse_loss(model(ids, lengths), reward)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:3d} {loss.item():.4f}")


train()
