"""Small residual convnet with an engine class that hides mixed precision."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Engine:
    def __init__(self, model, optimizer, dtype=torch.float16):
        self.model, self.optimizer, self.dtype = model, optimizer, dtype
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=1000)
        self.seen = 0

    def forward(self, x, y):
        with torch.autocast("cpu", dtype=self.dtype):
            return F.cross_entropy(self.model(x), y)

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.seen += 1


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.n = nn.GroupNorm(2, c)

    def forward(self, x):
        return x + self.b(F.relu(self.a(self.n(x))))


def corners(n):
    """A bright patch sits in one of the four quarters of the image."""
    image, quarter = torch.randn(n, 1, 10, 10), torch.randint(0, 4, (n,))
    for i, q in enumerate(quarter.tolist()):
        r, c = 5 * (q // 2) + random.randint(0, 2), 5 * (q % 2) + random.randint(0, 2)
        image[i, 0, r : r + 3, c : c + 3] += 1.6
    return (image - image.mean()) / image.std(), quarter


random.seed(33)
np.random.seed(33)
torch.manual_seed(33)
model = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), Residual(12), nn.ReLU(), nn.AvgPool2d(5), nn.Flatten(), nn.Linear(48, 4))
engine = Engine(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
losses = []
for i in range(80):
    x, y = corners(32)
    loss = engine.forward(x, y)
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
    if i % 16 == 15:
        print(engine.seen, round(float(np.mean(losses[-16:])), 4), engine.scaler.get_scale())
