"""Several molecules in one big block-diagonal matrix: many graphs, one forward pass without a batch dimension."""

import random

import torch
from torch import nn
from torch.nn import functional as F

random.seed(113)
torch.manual_seed(113)


def molecule():
    n = random.randint(4, 9)
    kind = torch.randint(0, 5, (n,))
    link = (torch.rand(n, n) < 0.4).float().triu(1)
    link = link + link.T + torch.eye(n)
    y = F.one_hot(kind, 5).float() @ torch.tensor([1.0, -0.5, 0.3, 0.8, -1.0])
    return kind, link, (link / link.sum(1, keepdim=True) @ y).mean() * 2.5


def join(rows):
    return torch.cat([r[0] for r in rows]), torch.block_diag(*[r[1] for r in rows]), rows


class Net(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.atom = nn.Embedding(5, c)
        self.msg = nn.ModuleList([nn.Linear(c, c) for _ in range(2)])
        self.own = nn.ModuleList([nn.Linear(c, c) for _ in range(2)])
        self.out = nn.Linear(c, 1)

    def forward(self, kind, block, owner, count):
        h = self.atom(kind)
        near = block / block.sum(1, keepdim=True)
        for msg, own in zip(self.msg, self.own):
            h = h + F.silu(own(h) + near @ msg(h))
        total = torch.zeros(count, h.size(1)).index_add(0, owner, h)
        size = torch.bincount(owner, minlength=count).unsqueeze(1)
        return self.out(total / size).squeeze(1)


mols = [molecule() for _ in range(800)]
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(3):
    net.train()
    random.shuffle(mols)
    total = 0.0
    for i in range(0, 720, 24):
        kind, block, rows = join(mols[i : i + 24])
        owner = torch.repeat_interleave(torch.arange(24), torch.tensor([len(r[0]) for r in rows]))
        y = torch.stack([r[2] for r in rows])
        loss = F.mse_loss(net(kind, block, owner, 24), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 30:.4f}")
