"""Byte-pair-like LM: vocabulary rounded up to a multiple of 64, rotary keys kept unrotated in a rolling cache when generating."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

USED = 37
VOCAB = 64
WINDOW = 16
CONTEXT = 24


def recipe_stream(length, seed):
    """Order-two chain over 37 symbols with two likely followers each."""
    rng = np.random.default_rng(seed)
    table = np.random.default_rng(3).integers(0, USED, size=(USED, 4, 2))
    out = [int(rng.integers(USED)), int(rng.integers(USED))]
    for _ in range(length - 2):
        a, b = out[-2], out[-1]
        out.append(int(rng.integers(USED)) if rng.random() < 0.02 else int(table[b, a % 4, int(rng.random() < 0.2)]))
    return torch.tensor(out)


def rotate(x, first):
    """Rotates (B, T, H, D) by the positions first, first + 1, ..."""
    t, d = x.shape[1], x.shape[-1]
    inv = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angle = (first + torch.arange(t))[:, None] * inv
    cos, sin = angle.cos()[None, :, None], angle.sin()[None, :, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class LocalAttention(nn.Module):
    """Every position sees itself and the WINDOW - 1 before it."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x, memory=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).unbind(2)
        if memory is not None:
            if memory:
                k, v = torch.cat([memory[0], k], dim=1)[:, -WINDOW:], torch.cat([memory[1], v], dim=1)[:, -WINDOW:]
            memory[:] = [k, v]
        back = k.shape[1] - t
        q, k = rotate(q, back), rotate(k, 0)
        gap = (back + torch.arange(t))[:, None] - torch.arange(k.shape[1])[None]
        seen = (gap >= 0) & (gap < WINDOW)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=seen)
        return self.proj(out.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = LocalAttention(dim, heads)
        self.fc, self.out = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, memory=None):
        x = x + self.attn(self.n1(x), memory)
        return x + self.out(F.relu(self.fc(self.n2(x))).square())


class LM(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)
        nn.init.normal_(self.emb.weight, std=0.02)
        self.lm_head.weight = self.emb.weight

    def forward(self, ids, memories=None):
        x = self.emb(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, None if memories is None else memories[i])
        return self.lm_head(self.norm(x))


@torch.no_grad()
def generate(model, prompt, count):
    model.eval()
    memories = [[] for _ in model.layers]
    ids, step = prompt, prompt[:, :1]
    for i in range(prompt.shape[1] + count - 1):
        logits = model(step, memories)
        step = prompt[:, i + 1 : i + 2] if i + 1 < prompt.shape[1] else logits[:, -1:, :USED].argmax(-1)
        if i + 1 >= prompt.shape[1]:
            ids = torch.cat([ids, step], dim=1)
    model.train()
    return ids


def main():
    torch.manual_seed(15)
    np.random.seed(15)
    train, held_out = recipe_stream(12000, seed=1), recipe_stream(1500, seed=2)
    model = LM()
    params = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in params if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
        ],
        lr=4e-3,
    )
    steps = 120
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min((step + 1) / 12, 0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))
        starts = torch.randint(len(train) - CONTEXT - 1, (32,))
        rows = torch.stack([train[s : s + CONTEXT + 1] for s in starts])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        rows = held_out[: 60 * (CONTEXT + 1)].view(60, CONTEXT + 1)
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    print(f"held-out loss {loss.item():.4f}")
    print(generate(model, held_out[:8][None], 40).tolist())


if __name__ == "__main__":
    main()
