"""Switch-style mixture of experts: each row goes to one expert, some experts stay idle in a batch."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(102)


class Switch(nn.Module):
    def __init__(self, width, experts=6):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, width)) for _ in range(experts))

    def forward(self, x):
        prob = self.router(x).softmax(-1)
        weight, chosen = prob.max(-1)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (chosen == i).nonzero().squeeze(-1)
            if len(rows):
                y = y.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        share = F.one_hot(chosen, prob.size(-1)).float().mean(0)
        return x + y, prob.size(-1) * (share * prob.mean(0)).sum()


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.moe = nn.ModuleList([Switch(width), Switch(width)])
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        h, balance = self.inp(x), 0.0
        for layer in self.moe:
            h, b = layer(h)
            balance = balance + b
        return self.out(h), balance


centres = torch.randn(5, 3, 8) * 1.5
y = torch.randint(0, 5, (1600,))
x = centres[y, torch.randint(0, 3, (1600,))] + 0.7 * torch.randn(1600, 8)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    net.train()
    for i in torch.randperm(1400).split(40):
        logits, balance = net(x[i])
        loss = F.cross_entropy(logits, y[i]) + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x[1400:])[0].argmax(1) == y[1400:]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {acc:.3f}")
