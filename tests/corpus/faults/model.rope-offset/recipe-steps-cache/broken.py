"""A decoder with rotary attention on action sequences; samples a continuation with a key/value cache after every epoch."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCAB, CONTEXT = 32, 40


def action_sequences(count, rng):
    """Three interleaved counters: the action at t is the one at t - 3 plus the stride of its counter."""
    rows = np.zeros((count, CONTEXT + 1), dtype=np.int64)
    rows[:, :3] = rng.integers(0, VOCAB, size=(count, 3))
    strides = np.array([1, 3, 7])
    for t in range(3, CONTEXT + 1):
        rows[:, t] = (rows[:, t - 3] + strides[t % 3]) % VOCAB
    return torch.from_numpy(rows)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Rotary(nn.Module):
    def __init__(self, head_dim, max_positions=128, theta=10000.0):
        super().__init__()
        inv = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
        freqs = torch.outer(torch.arange(max_positions).float(), inv)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos", emb.cos(), persistent=False)
        self.register_buffer("sin", emb.sin(), persistent=False)

    def forward(self, x, offset):
        length = x.size(-2)
        cos, sin = self.cos[offset : offset + length], self.sin[offset : offset + length]
        return x * cos + rotate_half(x) * sin


class CachedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.rotary = Rotary(dim // heads)

    def forward(self, x, past=None):
        b, t, d = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        start = 0 if past is None else past[0].size(2)
        q = self.rotary(q, 0)
        k = self.rotary(k, start)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.wo(y.transpose(1, 2).reshape(b, t, d)), (k, v)


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn_norm, self.ffn_norm = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.attn = CachedAttention(dim, heads)
        self.w1, self.w2, self.w3 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 2 * dim)

    def forward(self, x, past=None):
        attended, present = self.attn(self.attn_norm(x), past)
        x = x + attended
        h = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h)), present


class ActionModel(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads) for _ in range(depth))
        self.norm = nn.RMSNorm(dim)
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)

    def forward(self, ids, past=None):
        x = self.embed(ids)
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, None if past is None else past[i])
            presents.append(present)
        return self.lm_head(self.norm(x)), presents

    @torch.no_grad()
    def generate(self, prompt, count):
        logits, past = self(prompt)
        out = prompt
        for _ in range(count):
            token = logits[:, -1].argmax(-1, keepdim=True)
            out = torch.cat([out, token], dim=1)
            logits, past = self(token, past)
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    rng = np.random.default_rng(args.seed)
    loader = DataLoader(TensorDataset(action_sequences(640, rng)), batch_size=32, shuffle=True)
    held_out = action_sequences(40, rng)
    model = ActionModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        for (rows,) in loader:
            logits, _ = model(rows[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        sampled = model.generate(held_out[:, :12], 12)
        match = (sampled[:, 12:] == held_out[:, 12:24]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} continuation accuracy {match:.3f}")


if __name__ == "__main__":
    main()
