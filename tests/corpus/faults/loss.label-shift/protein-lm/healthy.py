"""Small autoregressive model of protein-like sequences."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

AMINO = "ACDEFGHIKLMNPQRSTVWY"
BOS = len(AMINO)
VOCAB = len(AMINO) + 1


def sample_families(n, length, rng):
    """Residues follow a sparse second-order chain, so context decides what comes next."""
    table = rng.integers(0, 20, size=(20, 20, 3))
    seqs = np.empty((n, length + 1), dtype=np.int64)
    seqs[:, 0] = BOS
    seqs[:, 1:3] = rng.integers(0, 20, size=(n, 2))
    for t in range(3, length + 1):
        pick = rng.choice(3, size=n, p=[0.85, 0.1, 0.05])
        seqs[:, t] = table[seqs[:, t - 2] % 4, seqs[:, t - 1], pick]
    return torch.from_numpy(seqs)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.to_qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.n2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.ff(self.n2(x))


class ProteinLM(nn.Module):
    def __init__(self, dim, heads, depth, max_len):
        super().__init__()
        self.residue = nn.Embedding(VOCAB, dim)
        self.position = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)
        nn.init.normal_(self.residue.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, ids):
        x = self.residue(ids) + self.position(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def lm_loss(model, ids):
    logits = model(ids)
    logits = logits[:, :-1].reshape(-1, VOCAB)
    labels = ids[:, 1:].reshape(-1)
    return F.cross_entropy(logits, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    seqs = sample_families(1400, args.length, np.random.default_rng(args.seed))
    train, held_out = seqs[:1200], seqs[1200:]
    model = ProteinLM(dim=48, heads=4, depth=2, max_len=args.length + 1)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=args.lr)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20))

    for step in range(args.steps):
        model.train()
        batch = train[torch.randint(len(train), (args.batch,))]
        loss = lm_loss(model, batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if (step + 1) % 40 == 0:
            model.eval()
            with torch.no_grad():
                val = lm_loss(model, held_out)
            print(f"step {step + 1:4d}  train {loss.item():.3f}  held-out {val.item():.3f}")


if __name__ == "__main__":
    main()
