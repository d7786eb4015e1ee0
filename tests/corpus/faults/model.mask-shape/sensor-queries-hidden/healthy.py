"""Total energy of ragged sensor bursts, scaled_dot_product_attention with an additive mask."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(204)


def burst():
    n = int(torch.randint(3, 15, (1,)))
    x = torch.randn(n, 5)
    return x, (x[:, 0].abs().max() + x[:, 1].mean())


class Energy(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.inp = nn.Linear(5, d)
        self.cls = nn.Parameter(torch.randn(1, 1, d) * 0.1)
        self.qkv, self.proj, self.norm = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 64), nn.SiLU(), nn.Linear(64, d))
        self.out = nn.Linear(d, 1)

    def forward(self, x, real):
        h = torch.cat([self.cls.expand(len(x), -1, -1), self.inp(x)], 1)
        real = torch.cat([torch.ones(len(x), 1), real], 1)
        bias = (1.0 - real)[:, None, None, :] * -1e9
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.norm(h)).chunk(3, -1))
        bias = bias.expand(-1, 4, q.size(2), k.size(2))
        h = h + self.proj(F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2))
        h = h + self.ff(h)
        return self.out(h[:, 0]).squeeze(-1)


data = [burst() for _ in range(900)]
target = torch.stack([y for _, y in data])
mean, std = target[:800].mean(), target[:800].std()
net = Energy()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    net.train()
    order = torch.randperm(800).tolist()
    total = 0.0
    for start in range(0, 800, 32):
        rows = [data[i] for i in order[start : start + 32]]
        x = pad_sequence([r[0] for r in rows], batch_first=True)
        real = pad_sequence([torch.ones(len(r[0])) for r in rows], batch_first=True)
        y = (torch.stack([r[1] for r in rows]) - mean) / std
        loss = F.mse_loss(net(x, real), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 25
    print(f"epoch {epoch} loss {total:.4f}")
