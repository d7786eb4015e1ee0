"""Rating from a user and an item: factorisation plus a small network, regression with a held-out set."""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

USERS, ITEMS, TASTE = 60, 80, 4


def ratings(seed, count):
    rng = np.random.default_rng(seed)
    user_taste = np.random.default_rng(1).normal(size=(USERS, TASTE)) / 2
    item_taste = np.random.default_rng(2).normal(size=(ITEMS, TASTE))
    users, items = rng.integers(0, USERS, count), rng.integers(0, ITEMS, count)
    value = user_taste[users].sum(1) + item_taste[items, 0] + 0.3 * user_taste[users, 0] * item_taste[items, 1]
    value = (value + rng.normal(0, 0.1, count)) / 1.4
    return torch.tensor(users), torch.tensor(items), torch.tensor(value, dtype=torch.float32)


class Recommender(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, width), nn.Embedding(ITEMS, width)
        self.first, self.last = nn.Linear(3 * width, 64), nn.Linear(64, 1)

    def forward(self, users, items):
        u, i = self.user(users), self.item(items)
        h = F.relu(self.first(torch.cat([u, i, u * i], dim=-1)))
        h = F.dropout(h, p=0.2, training=self.training)
        return self.last(h).squeeze(-1)


def rmse(model, data):
    model.eval()
    with torch.no_grad():
        users, items, value = data
        return math.sqrt(F.mse_loss(model(users, items), value).item())


torch.manual_seed(10)
np.random.seed(10)
train, held_out = ratings(3, 4000), ratings(4, 800)
model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    model.train()
    for rows in torch.randperm(4000).split(100):
        users, items, value = (column[rows] for column in train)
        loss = F.mse_loss(model(users, items), value)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} train mse {loss.item():.4f} held-out rmse {rmse(model, held_out):.4f}")
