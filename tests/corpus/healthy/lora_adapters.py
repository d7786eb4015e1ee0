"""Low-rank adapters on a frozen encoder that was trained on another task first."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(101)
VOCAB, LENGTH, WIDTH = 32, 14, 32


def task(n, modulus):
    x = torch.randint(0, VOCAB, (n, LENGTH))
    hits = (x % modulus == 0).float().mean(1)
    return x, (hits > hits.median()).long()


class LoRA(nn.Module):
    def __init__(self, inner, rank=4):
        super().__init__()
        self.inner = inner
        self.a = nn.Parameter(torch.randn(rank, inner.in_features) / inner.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(inner.out_features, rank))

    def forward(self, x):
        return self.inner(x) + x @ self.a.T @ self.b.T


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, x):
        z = self.n1(x)
        heads = [w(z).unflatten(-1, (4, -1)).transpose(1, 2) for w in (self.q, self.k, self.v)]
        x = x + self.o(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x):
        h = self.tok(x) + self.pos.weight
        for b in self.blocks:
            h = b(h)
        return self.head(h.mean(1))


def train(net, params, x, y, steps, lr):
    opt = torch.optim.Adam(params, lr=lr)
    net.train()
    for step in range(steps):
        i = torch.randint(0, len(x), (32,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(step, round(loss.item(), 3))


net = Net()
train(net, net.parameters(), *task(900, 3), steps=45, lr=2e-3)
net.requires_grad_(False)
for block in net.blocks:
    block.q, block.v = LoRA(block.q), LoRA(block.v)
    block.up, block.down = LoRA(block.up), LoRA(block.down)
net.head = nn.Linear(WIDTH, 2)
x, y = task(1000, 4)
train(net, [p for p in net.parameters() if p.requires_grad], x[:800], y[:800], steps=75, lr=5e-3)
net.eval()
with torch.no_grad():
    print("accuracy", (net(x[800:]).argmax(1) == y[800:]).float().mean().item())
