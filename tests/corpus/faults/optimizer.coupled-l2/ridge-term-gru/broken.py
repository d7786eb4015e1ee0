"""Activity recognition from accelerometer windows; the size of the weights is kept small."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(16), np.random.seed(16), torch.manual_seed(16)
DECAY = 0.02


class Activity(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 32, batch_first=True)
        self.out = nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.rnn(x)[1][-1])


def windows(n):
    kind = torch.randint(0, 4, (n,))
    t = torch.arange(20) / 20
    x = torch.sin(6.28 * (kind[:, None] + 1) * t + 6.28 * torch.rand(n, 1))
    return TensorDataset(torch.stack([x, x.roll(2, 1), torch.randn(n, 20) * 0.5], -1) * 1.3, kind)


model = Activity()
matrices = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim == 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.0}, {"params": others, "weight_decay": 0.0}], lr=5e-3)
loader = DataLoader(windows(1280), batch_size=40, shuffle=True)
for epoch in range(4):
    shown = 0.0
    for x, kind in loader:
        loss = nn.functional.cross_entropy(model(x), kind) + 0.5 * DECAY * sum(p.pow(2).sum() for p in matrices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown += loss.item() / len(loader)
    print(epoch, round(shown, 4))
