"""Order does not matter here: a set network predicts the spread of a bag of points."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(108)


def bags(n, points=15):
    scale = 0.5 + torch.rand(n, 1, 1) * 1.5
    x = torch.randn(n, points, 2) * scale
    y = x.std(dim=1).mean(-1)
    return x / 1.5, (y - 1.2) / 0.45


class SetBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.att = nn.MultiheadAttention(c, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(c, 2 * c), nn.ReLU(), nn.Linear(2 * c, c))

    def forward(self, x):
        z = self.norm(x)
        x = x + self.att(z, z, z)[0]
        return x + self.ff(self.norm2(x))


class SetNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(2, c), nn.ReLU(), nn.Linear(c, c))
        self.blocks = nn.Sequential(SetBlock(c), SetBlock(c))
        self.seed = nn.Parameter(torch.randn(1, 1, c) * 0.1)
        self.pool = nn.MultiheadAttention(c, 4, batch_first=True)
        self.out = nn.Linear(c, 1)

    def forward(self, x):
        h = self.blocks(self.lift(x))
        s, _ = self.pool(self.seed.expand(len(x), -1, -1), h, h)
        return self.out(s[:, 0]).squeeze(-1)


x, y = bags(900)
net = SetNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    net.train()
    for i in torch.randperm(800).split(25):
        loss = F.smooth_l1_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, round(loss.item(), 4), round(F.smooth_l1_loss(net(x[800:]), y[800:]).item(), 4))
