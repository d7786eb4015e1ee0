"""Thirty linear layers on two spirals."""

import torch
from torch import nn

torch.manual_seed(207)
t = torch.rand(1400) * 3 + 0.3
side = torch.randint(0, 2, (1400,))
angle = 2 * t + torch.pi * side
x = torch.stack([t * angle.cos(), t * angle.sin()], 1) / 2 + 0.03 * torch.randn(1400, 2)


class Skip(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, h):
        return torch.relu(self.lin(h))


def build(width=32, depth=28):
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), *[Skip(width) for _ in range(depth)], nn.Linear(width, 2))


net = build()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    for i in torch.randperm(1200).split(60):
        loss = nn.functional.cross_entropy(net(x[i]), side[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(epoch, round(loss.item(), 3), (net(x[1200:]).argmax(1) == side[1200:]).float().mean().item())
