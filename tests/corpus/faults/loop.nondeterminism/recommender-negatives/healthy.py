"""Item recommendation with sampled negatives, dot-product scores and a logistic loss."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Taste(nn.Module):
    def __init__(self, users, items, width=12):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.items.weight, std=0.3)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


class NegativeSampler:
    """Items the user has not chosen, drawn uniformly."""

    def __init__(self, chosen, items):
        self.chosen, self.items = chosen, items
        self.rng = np.random.default_rng(99)

    def __call__(self, users):
        drawn = self.rng.integers(0, self.items, len(users))
        for i, u in enumerate(users):
            while drawn[i] in self.chosen[int(u)]:
                drawn[i] = self.rng.integers(0, self.items)
        return torch.from_numpy(drawn)


def history(users, items, per_user):
    group = torch.randint(0, 4, (users,))
    kind = torch.randint(0, 4, (items,))
    pairs = []
    for u in range(users):
        liked = torch.nonzero(kind == group[u]).flatten()
        pairs += [(u, int(i)) for i in liked[torch.randperm(len(liked))[:per_user]]]
    return torch.tensor(pairs)


random.seed(13)
np.random.seed(13)
torch.manual_seed(13)
pairs = history(120, 80, 8)
chosen = {u: set(pairs[pairs[:, 0] == u, 1].tolist()) for u in range(120)}
negatives = NegativeSampler(chosen, 80)
model = Taste(120, 80)
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
for epoch in range(6):
    losses = []
    for rows in torch.randperm(len(pairs)).split(64):
        user, liked = pairs[rows].unbind(1)
        other = negatives(user)
        loss = F.softplus(model(user, other) - model(user, liked)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {np.mean(losses):.4f}")
