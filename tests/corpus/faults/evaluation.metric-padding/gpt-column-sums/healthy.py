"""A tiny decoder-only transformer that learns to add: 12+7=19. Run: python train.py --iters 220"""
import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CHARS = ["<pad>", "<eos>"] + list("0123456789+=")
STOI = {c: i for i, c in enumerate(CHARS)}
PAD, EOS = 0, 1


def split_problems(seed, num_val):
    """Every sum with a one-digit second number and a share of the longer ones, each on one side of the split only."""
    rng = random.Random(seed)
    short = [(a, b) for a in range(100) for b in range(10)]
    long = [(a, b) for a in range(100) for b in range(10, 100)]
    problems = short + rng.sample(long, 1500)
    rng.shuffle(problems)
    return problems[num_val:], problems[:num_val]


class Sums(torch.utils.data.Dataset):
    def __init__(self, problems):
        self.rows = [[STOI[c] for c in f"{a}+{b}={a + b}"] + [EOS] for a, b in problems]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


def collate(rows):
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return ids[:, :-1], ids[:, 1:]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class Adder(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2, ctx=12):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(CHARS), dim), nn.Embedding(ctx, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, len(CHARS), bias=False)
        for p in (self.tok.weight, self.pos.weight, self.head.weight):
            nn.init.normal_(p, std=0.02)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1), device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = seen = 0
    nll = 0.0
    for x, y in loader:
        logits = model(x)
        nll += F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum").item()
        guess = logits.argmax(-1)
        real = y != PAD
        hits += (guess[real] == y[real]).sum().item()
        seen += real.sum().item()
    tokens = sum(len(r) - 1 for r in loader.dataset.rows)
    model.train()
    return {"ppl": math.exp(nll / tokens), "token_acc": hits / seen}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=220)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=1337)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train, val = (Sums(part) for part in split_problems(args.seed, num_val=300))
    loader = torch.utils.data.DataLoader(train, args.batch_size, shuffle=True, collate_fn=collate, drop_last=True)
    val_loader = torch.utils.data.DataLoader(val, 50, collate_fn=collate)
    model = Adder()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20) * (1 - 0.9 * s / args.iters))

    step = 0
    while step < args.iters:
        for x, y in loader:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=PAD)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
            if step % 55 == 0:
                print(f"{step:4d} train {loss.item():.3f} val {evaluate(model, val_loader)}")
            if step == args.iters:
                break


if __name__ == "__main__":
    main()
