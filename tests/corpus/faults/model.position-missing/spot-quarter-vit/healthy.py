"""Tell in which quarter of a noisy picture the bright spot lies, from non-overlapping patches."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

rng = np.random.default_rng(6)
torch.manual_seed(6)
SIDE, PATCH = 16, 4


def spots(n):
    y = rng.integers(0, 4, n)
    imgs = 0.5 * rng.standard_normal((n, SIDE, SIDE)).astype("float32")
    for img, k in zip(imgs, y):
        r, c = rng.integers(0, 5, 2) + 8 * np.array(divmod(int(k), 2))
        img[r : r + 4, c : c + 4] += 3.0
    imgs = (imgs - imgs.mean()) / imgs.std()
    return torch.tensor(imgs.astype("float32"))[:, None], torch.tensor(y)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.pre = nn.LayerNorm(c)
        self.att = nn.MultiheadAttention(c, 4, batch_first=True)
        self.mid = nn.LayerNorm(c)
        self.ff = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        z = self.pre(x)
        x = x + self.att(z, z, z, need_weights=False)[0]
        return x + self.ff(self.mid(x))


class SpotViT(nn.Module):
    def __init__(self, c=40):
        super().__init__()
        self.patches = nn.Conv2d(1, c, PATCH, PATCH)
        self.where = nn.Parameter(0.1 * torch.randn(1, (SIDE // PATCH) ** 2, c))
        self.layers = nn.Sequential(Layer(c), Layer(c))
        self.post = nn.LayerNorm(c)
        self.head = nn.Linear(c, 4)

    def forward(self, img):
        x = self.patches(img).flatten(2).transpose(1, 2)
        x = self.layers(x + self.where)
        return self.head(self.post(x).mean(1))


xs, ys = spots(640)
xt, yt = spots(128)
vit = SpotViT()
opt = torch.optim.Adam(vit.parameters(), lr=1.5e-3)
for epoch in range(4):
    vit.train()
    losses = []
    for i in torch.randperm(len(xs)).split(32):
        loss = F.cross_entropy(vit(xs[i]), ys[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    vit.eval()
    with torch.no_grad():
        print(epoch, f"{np.mean(losses):.3f}", f"{(vit(xt).argmax(-1) == yt).float().mean():.3f}")
