"""Tiny decoder-only model over synthetic log lines, with rotary positions and a key/value cache for sampling."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def build_stream(num_lines, rng):
    """Log lines: <level> <host> <counter digits> <newline>, counters climb by a per-host stride."""
    tokens = []
    counters = {h: rng.randrange(10) for h in range(6)}
    for i in range(num_lines):
        host = i % 6 if rng.random() < 0.8 else rng.randrange(6)
        counters[host] = (counters[host] + host + 1) % 10
        level = 0 if counters[host] < 7 else 1
        tokens += [10 + level, 12 + host, counters[host], 18]
    return torch.tensor(tokens)


def rotary_tables(head_dim, max_len, theta=10000.0):
    inv = 1.0 / (theta ** (torch.arange(0, head_dim, 2).float() / head_dim))
    angles = torch.outer(torch.arange(max_len).float(), inv)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def apply_rotary(x, cos, sin):
    return x * cos + rotate_half(x) * sin


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin, past=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.proj(out.transpose(1, 2).reshape(b, t, d)), (k, v)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, cos, sin, past=None):
        a, present = self.attn(self.ln1(x), cos, sin, past)
        x = x + a
        return x + self.mlp(self.ln2(x)), present


class LogGPT(nn.Module):
    def __init__(self, vocab, dim, heads, layers, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        cos, sin = rotary_tables(dim // heads, max_len)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        nn.init.normal_(self.lm_head.weight, std=0.02)

    def forward(self, idx, past_key_values=None):
        past_length = 0 if past_key_values is None else past_key_values[0][0].size(2)
        t = idx.size(1)
        cos, sin = self.cos[past_length : past_length + t], self.sin[past_length : past_length + t]
        x = self.embed(idx)
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, cos, sin, None if past_key_values is None else past_key_values[i])
            presents.append(present)
        return self.lm_head(self.ln_f(x)), presents

    @torch.no_grad()
    def generate(self, idx, num_new):
        self.eval()
        logits, cache = self(idx)
        for _ in range(num_new):
            nxt = logits[:, -1].argmax(-1, keepdim=True)
            idx = torch.cat([idx, nxt], dim=1)
            logits, cache = self(nxt, cache)
        return idx


def get_batch(data, batch_size, block):
    starts = torch.randint(len(data) - block - 1, (batch_size,))
    x = torch.stack([data[s : s + block] for s in starts])
    y = torch.stack([data[s + 1 : s + block + 1] for s in starts])
    return x, y


@torch.no_grad()
def evaluate(model, data, args):
    model.eval()
    losses = []
    for _ in range(4):
        x, y = get_batch(data, args.batch_size, args.block)
        logits, _ = model(x)
        losses.append(F.cross_entropy(logits.flatten(0, 1), y.flatten()).item())
    return sum(losses) / len(losses)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=120)
    p.add_argument("--block", type=int, default=48)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=1337)
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    stream = build_stream(3000, random.Random(args.seed))
    split = int(0.9 * len(stream))
    train, val = stream[:split], stream[split:]
    model = LogGPT(vocab=19, dim=64, heads=4, layers=2, max_len=256)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)

    for step in range(args.steps):
        model.train()
        x, y = get_batch(train, args.batch_size, args.block)
        logits, _ = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 40 == 0 or step == args.steps - 1:
            print(f"step {step} train {loss.item():.4f} val {evaluate(model, val, args):.4f}")
            prompt = val[:24].unsqueeze(0)
            sample = model.generate(prompt, 16)[0, 24:]
            print("  sample", sample.tolist(), "match", (sample == val[24:40]).float().mean().item())


if __name__ == "__main__":
    main()
