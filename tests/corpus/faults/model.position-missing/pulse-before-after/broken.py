"""Did the pulse come before the dip? Encoder over numeric steps, sequence first."""

import numpy as np
import torch
from torch import nn

np.random.seed(206)
torch.manual_seed(206)


def traces(n, t=20):
    x = 0.3 * np.random.randn(n, t, 3)
    y = np.random.randint(0, 2, n)
    for i in range(n):
        a, b = sorted(np.random.choice(t, 2, replace=False))
        up, down = (a, b) if y[i] else (b, a)
        x[i, up, 0] += 2.0
        x[i, down, 1] -= 2.0
    return torch.tensor(x, dtype=torch.float32).transpose(0, 1), torch.tensor(y)


class Trace(nn.Module):
    def __init__(self, d=32, t=20):
        super().__init__()
        self.lift = nn.Linear(3, d)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, norm_first=True) for _ in range(2))
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        h = self.lift(x)
        for layer in self.layers:
            h = layer(h)
        return self.head(h.mean(0))


x, y = traces(900)
net = Trace()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(5):
    net.train()
    for i in torch.randperm(800).split(32):
        loss = nn.functional.cross_entropy(net(x[:, i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, round(loss.item(), 3), (net(x[:, 800:]).argmax(1) == y[800:]).float().mean().item())
