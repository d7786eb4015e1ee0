"""A decoder with hand-written RMSprop (epsilon inside the root), float bias masks, RMS norms and a full position table."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BLOCK, VOCAB = 24, 20


class InnerEpsRMSprop(torch.optim.Optimizer):
    """RMSprop as in the other big framework: the mean square starts at one and epsilon sits inside the root."""

    def __init__(self, params, lr=1e-3, alpha=0.9, eps=1e-6, momentum=0.9):
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["square_avg"] = torch.ones_like(p)
                    state["momentum_buffer"] = torch.zeros_like(p)
                square, buffer = state["square_avg"], state["momentum_buffer"]
                square.lerp_(p.grad.square(), 1 - group["alpha"])
                buffer.mul_(group["momentum"]).addcdiv_(p.grad, (square + group["eps"]).sqrt(), value=group["lr"])
                p.sub_(buffer)
        return loss


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x, bias):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads) for z in self.qkv(x).chunk(3, dim=-1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d // self.heads)
        weights = (scores + bias[:, :t, :t]).softmax(dim=-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d))


class SquaredReLU(nn.Module):
    def forward(self, x):
        return F.relu(x).square()


class Decoder(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(BLOCK, dim)
        self.attn = nn.ModuleList(Attention(dim, heads) for _ in range(depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 3 * dim), SquaredReLU(), nn.Linear(3 * dim, dim)) for _ in range(depth)
        )
        self.norms = nn.ModuleList(RMSNorm(dim) for _ in range(2 * depth + 1))
        self.head = nn.Linear(dim, VOCAB)
        nn.init.normal_(self.tok.weight, std=0.1)
        nn.init.normal_(self.pos.weight, std=0.1)
        distance = torch.arange(BLOCK)[None, :] - torch.arange(BLOCK)[:, None]
        slopes = torch.tensor([2.0 ** -(i + 2) for i in range(heads)])
        bias = slopes[:, None, None] * distance.clamp(max=0).float()
        self.register_buffer("bias", bias.masked_fill(distance > 0, -1e4))

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.size(1)]
        for i, (attn, mlp) in enumerate(zip(self.attn, self.mlp, strict=True)):
            x = x + attn(self.norms[2 * i](x), self.bias)
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x))

    @torch.no_grad()
    def continue_from(self, ids, count):
        for _ in range(count):
            logits = self(ids[:, -BLOCK:])
            ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        return ids


def bouncing(n, length):
    """A ball in a box: position reflects at the walls, speed stays."""
    start, speed = torch.randint(0, 2 * (VOCAB - 1), (n, 1)), torch.randint(1, 4, (n, 1))
    raw = (start + speed * torch.arange(length)) % (2 * (VOCAB - 1))
    return torch.where(raw < VOCAB, raw, 2 * (VOCAB - 1) - raw)


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    model = Decoder()
    optimizer = InnerEpsRMSprop(model.parameters(), lr=5e-4)
    val = bouncing(64, BLOCK + 1)
    for step in range(140):
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = 5e-4 * min(1.0, (step + 1) / 15)
        batch = bouncing(32, BLOCK + 1)
        loss = F.cross_entropy(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 35 == 0 or step == 139:
            model.eval()
            with torch.no_grad():
                val_loss = F.cross_entropy(model(val[:, :-1]).transpose(1, 2), val[:, 1:]).item()
            print(f"step {step} loss {loss.item():.3f} val {val_loss:.3f}")
    model.eval()
    print(model.continue_from(bouncing(1, 12), 24)[0].tolist())


if __name__ == "__main__":
    main()
