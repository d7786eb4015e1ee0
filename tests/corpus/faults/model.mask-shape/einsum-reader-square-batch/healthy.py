"""Weighted-sum regression over short item lists with einsum attention; lists are padded to 16 slots."""

import argparse

import numpy as np
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--slots", type=int, default=16)
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--seed", type=int, default=3)
args = parser.parse_args()
torch.manual_seed(args.seed)
np.random.seed(args.seed)

N = 768
lengths = torch.randint(3, args.slots + 1, (N,))
items = torch.randn(N, args.slots, 6)
present = torch.arange(args.slots)[None, :] < lengths[:, None]
items = items * present[..., None]
true_w = torch.tensor([0.8, -0.5, 0.3, 0.0, 0.4, -0.2])
target = ((items @ true_w) * present).sum(1) / lengths.sqrt()
target = (target - target.mean()) / target.std()


class Reader(torch.nn.Module):
    def __init__(self, d=32, heads=4):
        super().__init__()
        self.h, self.dk = heads, d // heads
        self.inp = torch.nn.Linear(6, d)
        self.slot = torch.nn.Parameter(0.02 * torch.randn(args.slots, d))
        self.wq, self.wk, self.wv = (torch.nn.Linear(d, d, bias=False) for _ in range(3))
        self.wo = torch.nn.Linear(d, d)
        self.norm1, self.norm2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(d, 64), torch.nn.GELU(), torch.nn.Linear(64, d))
        self.head = torch.nn.Linear(d, 1)

    def attend(self, x, keep):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, self.h, self.dk) for w in (self.wq, self.wk, self.wv))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.dk**0.5
        scores = scores.masked_fill(~keep[:, None, None, :], -1e9)
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        return self.wo(mixed.reshape(b, t, -1))

    def forward(self, x, keep):
        h = self.inp(x) + self.slot
        h = h + self.attend(self.norm1(h), keep)
        h = h + self.mlp(self.norm2(h))
        pooled = (h * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).sqrt()
        return self.head(pooled).squeeze(-1)


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
order = torch.randperm(N)
train_idx, test_idx = order[:640], order[640:]
for step in range(args.steps):
    pick = train_idx[torch.randint(0, len(train_idx), (args.batch,))]
    loss = F.mse_loss(model(items[pick], present[pick]), target[pick])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 0 or step == args.steps - 1:
        model.eval()
        with torch.no_grad():
            parts = [F.mse_loss(model(items[i], present[i]), target[i]) for i in test_idx.split(args.batch)]
        model.train()
        print(f"{step:4d} loss {loss.item():.4f} test {torch.stack(parts).mean():.4f}")
