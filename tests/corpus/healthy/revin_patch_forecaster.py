"""Patch Transformer with reversible instance normalisation on raw-scale series."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(105)
PAST, AHEAD, PATCH = 48, 12, 6


def series(n):
    t = torch.arange(PAST + AHEAD).float()
    f = 1 + torch.rand(n, 1) * 2
    y = torch.sin(2 * torch.pi * f * t / 24 + 6 * torch.rand(n, 1)) + 0.1 * torch.randn(n, PAST + AHEAD)
    y = y * (1 + 4 * torch.rand(n, 1)) + 3 * torch.randn(n, 1)
    return y[:, :PAST], y[:, PAST:]


class PatchForecaster(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
        self.embed = nn.Linear(PATCH, width)
        self.pos = nn.Parameter(torch.randn(1, PAST // PATCH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 80, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width * PAST // PATCH, AHEAD)

    def forward(self, past):
        mean = past.mean(1, keepdim=True).detach()
        std = past.var(1, keepdim=True, unbiased=False).add(1e-5).sqrt().detach()
        z = (past - mean) / std * self.gain + self.shift
        h = self.body(self.embed(z.unfold(1, PATCH, PATCH)) + self.pos)
        out = self.head(h.flatten(1))
        return (out - self.shift) / (self.gain + 1e-5) * std + mean


loader = DataLoader(TensorDataset(*series(640)), batch_size=32, shuffle=True)
past, ahead = series(96)
net = PatchForecaster()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    net.train()
    total = 0.0
    for p, a in loader:
        loss = nn.functional.l1_loss(net(p), a)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        print(epoch, f"{total / len(loader):.4f} {nn.functional.l1_loss(net(past), ahead):.4f}")
