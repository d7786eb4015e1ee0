"""Learned radial basis functions: centres and widths per layer."""

import torch
from torch import nn

torch.manual_seed(209)
x = torch.rand(1600, 2) * 4 - 2
y = torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1])


class Radial(nn.Module):
    def __init__(self, sizes=(2, 24, 24)):
        super().__init__()
        self.centres = nn.ParameterList([nn.Parameter(torch.randn(b, a)) for a, b in zip(sizes, sizes[1:])])
        self.widths = nn.ParameterList([nn.Parameter(torch.zeros(b)) for b in sizes[1:]])
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, h):
        for c, w in zip(self.centres, self.widths):
            d2 = (h[:, None, :] - c).pow(2).mean(-1)
            h = torch.exp(-d2 * w.exp())
        return self.out(h).squeeze(-1)


net = Radial()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    for i in torch.randperm(1400).split(70):
        loss = nn.functional.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(epoch, round(loss.item(), 4), round(nn.functional.mse_loss(net(x[1400:]), y[1400:]).item(), 4))
