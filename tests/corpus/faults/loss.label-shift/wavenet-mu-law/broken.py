"""Autoregressive model of quantised waveforms: gated dilated causal convolutions."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
LEVELS = 32


def waves(n, length=49):
    t = torch.arange(length) / 10
    f = 0.6 + 0.8 * torch.rand(n, 1)
    x = 0.6 * torch.sin(2 * math.pi * f * t + 6.28 * torch.rand(n, 1)) + 0.3 * torch.sin(4 * math.pi * f * t)
    x = (x + 0.08 * torch.randn(n, length)).clamp(-1, 1)
    squeezed = torch.sign(x) * torch.log1p(31 * x.abs()) / math.log(32)
    return ((squeezed + 1) / 2 * (LEVELS - 1)).round().long()


class Gated(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.reach = dilation
        self.both = nn.Conv1d(c, 2 * c, 2, dilation=dilation)
        self.res = nn.Conv1d(c, c, 1)
        self.skip = nn.Conv1d(c, c, 1)

    def forward(self, x):
        a, b = self.both(F.pad(x, (self.reach, 0))).chunk(2, 1)
        z = torch.tanh(a) * torch.sigmoid(b)
        return x + self.res(z), self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.embed = nn.Embedding(LEVELS, c)
        self.layers = nn.ModuleList([Gated(c, 2**i) for i in range(4)])
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, LEVELS, 1))

    def forward(self, q):
        x = self.embed(q).transpose(1, 2)
        total = 0
        for layer in self.layers:
            x, skip = layer(x)
            total = total + skip
        return self.out(total)


train, test = waves(512), waves(64)
net = WaveNet()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(5):
    net.train()
    total = 0.0
    batches = torch.randperm(len(train)).split(32)
    for rows in batches:
        clip = train[rows]
        future, past = clip[:, :-1], clip[:, 1:]
        loss = F.cross_entropy(net(past), future)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        future, past = test[:, :-1], test[:, 1:]
        print(f"epoch {epoch} train {total / len(batches):.3f} test {F.cross_entropy(net(past), future).item():.3f}")
