"""A small vision transformer: on which side of the picture is the bright spot? Patches, class token, learned positions."""

import random

import numpy as np
import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self, patch, dim, grid):
        super().__init__()
        self.proj = nn.Conv2d(1, dim, patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, grid * grid + 1, dim) * 0.5)

    def forward(self, img):
        x = self.proj(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)
        return x + self.pos[:, : x.shape[1]]


class Encoder(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.ln2(x))


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, dim=32, depth=2, heads=4, classes=4):
        super().__init__()
        self.patches = Patches(patch, dim, size // patch)
        self.blocks = nn.Sequential(*[Encoder(dim, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        return self.head(self.blocks(self.patches(img))[:, 0])


def pictures(n, rng):
    y = rng.integers(0, 4, n)
    img = rng.normal(0, 0.5, (n, 1, 16, 16))
    for i, q in enumerate(y):
        r, c = rng.integers(0, 6, 2)
        top, left = 8 * (q // 2) + r, 8 * (q % 2) + c
        img[i, 0, top : top + 3, left : left + 3] += 3.0
    img = (img - img.mean()) / img.std()
    return torch.tensor(img, dtype=torch.float32), torch.tensor(y)


def main():
    torch.manual_seed(17)
    random.seed(17)
    np.random.seed(17)
    rng = np.random.default_rng(17)
    xs, ys = pictures(1024, rng)
    xt, yt = pictures(200, rng)
    model = ViT()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=128, eta_min=2e-4)
    lossfn = nn.CrossEntropyLoss()
    for epoch in range(4):
        order = torch.randperm(len(xs))
        model.train()
        for part in order.split(32):
            opt.zero_grad()
            loss = lossfn(model(xs[part]), ys[part])
            loss.backward()
            opt.step()
            sched.step()
        model.eval()
        with torch.no_grad():
            acc = (model(xt).argmax(-1) == yt).float().mean()
        print(epoch, f"loss {loss.item():.3f} acc {acc.item():.3f}")


main()
