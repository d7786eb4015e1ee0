"""Melody language model with Accelerate and gradient accumulation."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

VOCAB, CONTEXT = 32, 24


class Melodies(Dataset):
    """Notes walk on a scale with a preferred next interval."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        step = rng.choice([1, 2, -1, 5], p=[0.55, 0.25, 0.15, 0.05], size=(n, CONTEXT))
        start = rng.integers(0, VOCAB, (n, 1))
        notes = np.concatenate([start, start + step.cumsum(1)], 1) % VOCAB
        self.notes = torch.from_numpy(notes)

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return self.notes[i, :-1], self.notes[i, 1:]


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Decoder(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(CONTEXT, dim)
        nn.init.normal_(self.tok.weight, std=0.05)
        nn.init.normal_(self.pos.weight, std=0.05)
        self.attn = nn.ModuleList(CausalSelfAttention(dim, heads) for _ in range(depth))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth))
        self.norm1 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.norm2 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.final = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        for attn, mlp, n1, n2 in zip(self.attn, self.mlp, self.norm1, self.norm2, strict=False):
            x = x + attn(n1(x))
            x = x + mlp(n2(x))
        return self.lm_head(self.final(x))


def main():
    set_seed(23)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    epochs = 4
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    loader = DataLoader(Melodies(768, 0), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    updates = epochs * math.ceil(len(loader) / accelerator.gradient_accumulation_steps)
    warmup = updates // 10
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer.optimizer,
        lambda s: (s + 1) / warmup if s < warmup else 0.5 * (1 + math.cos(math.pi * min(1.0, (s - warmup) / (updates - warmup)))),
    )
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for ids, targets in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch} nll {total / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
