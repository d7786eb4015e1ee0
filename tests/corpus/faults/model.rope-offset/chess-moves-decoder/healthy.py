"""A llama-shaped decoder over coded chess openings, trained from scratch and then asked to continue a game move by move."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ModelArgs:
    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    vocab_size: int = 40
    max_seq_len: int = 64
    rope_theta: float = 10000.0


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def precompute_cos_sin(head_dim, length, theta):
    inv = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(length).float(), inv)
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def apply_rotary(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads, self.head_dim = args.n_heads, args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.dim, bias=False)
        self.wk = nn.Linear(args.dim, args.dim, bias=False)
        self.wv = nn.Linear(args.dim, args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x, cos, sin, start_pos, cache):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        q = apply_rotary(q, cos[start_pos : start_pos + t], sin[start_pos : start_pos + t])
        k = apply_rotary(k, cos[start_pos : start_pos + t], sin[start_pos : start_pos + t])
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
            cache["k"], cache["v"] = k, v
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        future = torch.ones(t, k.shape[2], dtype=torch.bool).triu(1 + start_pos)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, 3 * dim, bias=False)
        self.w2 = nn.Linear(3 * dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attention, self.feed_forward = Attention(args), FeedForward(args.dim)
        self.attention_norm, self.ffn_norm = RMSNorm(args.dim), RMSNorm(args.dim)

    def forward(self, x, cos, sin, start_pos, cache):
        x = x + self.attention(self.attention_norm(x), cos, sin, start_pos, cache)
        return x + self.feed_forward(self.ffn_norm(x))


class Decoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        nn.init.normal_(self.tok_embeddings.weight, std=0.02)
        self.layers = nn.ModuleList([Layer(args) for _ in range(args.n_layers)])
        self.norm = RMSNorm(args.dim)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        cos, sin = precompute_cos_sin(args.dim // args.n_heads, args.max_seq_len, args.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens, start_pos=0, caches=None):
        h = self.tok_embeddings(tokens)
        for i, layer in enumerate(self.layers):
            h = layer(h, self.cos, self.sin, start_pos, None if caches is None else caches[i])
        return self.output(self.norm(h))

    @torch.no_grad()
    def generate(self, prompt, steps):
        self.eval()
        caches = [{} for _ in self.layers]
        logits = self(prompt, 0, caches)
        tokens = prompt
        for _ in range(steps):
            nxt = logits[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, nxt], dim=1)
            logits = self(nxt, tokens.shape[1] - 1, caches)
        self.train()
        return tokens


def openings(count, length, rng):
    """Games follow one of eight book lines, entered at some move, with a few side moves."""
    book = np.random.default_rng(5).integers(0, 40, size=(8, length))
    lines = book[rng.integers(0, 8, size=count)]
    side = rng.random(lines.shape) < 0.04
    return torch.from_numpy(np.where(side, rng.integers(0, 40, size=lines.shape), lines))


def main():
    torch.manual_seed(1234)
    np.random.seed(1234)
    rng = np.random.default_rng(1234)
    args = ModelArgs()
    games, held_out = openings(1024, 33, rng), openings(64, 33, rng)
    model = Decoder(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 10, 0.5 * (1 + math.cos(math.pi * s / 120))))
    for step in range(110):
        batch = games[torch.randint(len(games), (24,))]
        loss = F.cross_entropy(model(batch[:, :-1]).reshape(-1, args.vocab_size), batch[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    played = model.generate(held_out[:16, :8], 24)
    print(f"agreement with the book: {(played[:, 8:] == held_out[:16, 8:32]).float().mean():.3f}")


if __name__ == "__main__":
    main()
