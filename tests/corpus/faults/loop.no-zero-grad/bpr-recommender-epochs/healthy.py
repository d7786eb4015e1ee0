"""Implicit-feedback recommender trained with the pairwise BPR objective."""

import random
from collections import defaultdict

import numpy as np
import torch
from torch import nn
from torch.nn.functional import logsigmoid


class History:
    def __init__(self, users, items, per_user, rng):
        likes = rng.normal(0, 1, (users, 3))
        traits = rng.normal(0, 1, (items, 3))
        affinity = likes @ traits.T + 0.2 * rng.standard_normal((users, items))
        ranked = np.argsort(-affinity, axis=1)[:, :per_user]
        self.pairs = [(u, int(i)) for u in range(users) for i in ranked[u]]
        self.seen = defaultdict(set)
        for u, i in self.pairs:
            self.seen[u].add(i)
        self.items = items

    def triples(self, rng):
        order = rng.permutation(len(self.pairs))
        for k in order:
            u, good = self.pairs[k]
            bad = int(rng.integers(self.items))
            while bad in self.seen[u]:
                bad = int(rng.integers(self.items))
            yield u, good, bad


def chunks(stream, size):
    block = []
    for row in stream:
        block.append(row)
        if len(block) == size:
            yield torch.tensor(block).unbind(1)
            block = []
    if block:
        yield torch.tensor(block).unbind(1)


class BPR(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.normal_(self.bias.weight, std=0.01)

    def score(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def forward(self, u, good, bad):
        return self.score(u, good) - self.score(u, bad)


def main(users=60, items=90, dim=16, epochs=5, batch=64, lr=8.0):
    random.seed(15)
    np.random.seed(15)
    torch.manual_seed(15)
    rng = np.random.default_rng(15)
    history = History(users, items, 14, rng)
    model = BPR(users, items, dim)
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        losses, wins = [], []
        for u, good, bad in chunks(history.triples(rng), batch):
            margin = model(u, good, bad)
            loss = -logsigmoid(margin).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            wins.append((margin > 0).float().mean().item())
        print(f"epoch {epoch}: bpr {np.mean(losses):.4f} pair accuracy {np.mean(wins):.3f}")


if __name__ == "__main__":
    main()
