"""Soft mixture of experts on a piecewise function."""

import torch
from torch import nn

torch.manual_seed(19)


def target(x):
    a = torch.sin(2 * x[:, 0]) + x[:, 1]
    b = x[:, 1] * x[:, 2] - 0.5
    c = x[:, 3].abs() - x[:, 0]
    return torch.where(x[:, 4] > 0.5, a, torch.where(x[:, 4] < -0.5, b, c))


class Experts(nn.Module):
    def __init__(self, n_experts=4, width=32):
        super().__init__()
        self.router = nn.Linear(5, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
            for _ in range(n_experts)
        )
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        gate = self.router(x).softmax(-1)
        each = torch.cat([expert(x) for expert in self.experts], dim=-1)
        return self.gain * (gate * each).sum(-1)


x = torch.randn(2000, 5)
y = target(x)
y = (y - y[:1700].mean()) / y[:1700].std()
model = Experts()
optim = torch.optim.Adam(model.parameters(), lr=5e-3)
huber = nn.SmoothL1Loss()
for epoch in range(3):
    model.train()
    total = 0.0
    chunks = torch.randperm(1700).split(50)
    for rows in chunks:
        optim.zero_grad()
        loss = huber(model(x[rows]), y[rows])
        loss.backward()
        optim.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        held = huber(model(x[1700:]), y[1700:]).item()
    print(f"epoch {epoch}: {total / len(chunks):.4f} held-out {held:.4f}")
