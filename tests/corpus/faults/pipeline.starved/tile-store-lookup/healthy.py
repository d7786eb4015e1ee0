import random
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class TileStore:
    """A key-value store behind a network: every request costs a round trip."""

    round_trip = 0.003

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 3, (n,), generator=g)
        self.value = torch.randn(n, 10, generator=g)
        self.value[torch.arange(n), self.label] += 2.0

    def get(self, keys):
        time.sleep(self.round_trip)
        return self.value[keys], self.label[keys]


class Stream(IterableDataset):
    def __init__(self, store, n, chunk):
        self.store, self.n, self.chunk = store, n, chunk

    def __iter__(self):
        keys = list(range(self.n))
        random.shuffle(keys)
        for start in range(0, self.n, self.chunk):
            values, labels = self.store.get(keys[start : start + self.chunk])
            yield from zip(values, labels)


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(10, 32)
        self.outer = nn.Linear(32, 3)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


def main():
    random.seed(81)
    torch.manual_seed(81)
    store = TileStore(640, 81)
    loader = DataLoader(Stream(store, 640, chunk=64), batch_size=16)
    model = Probe()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(2):
        for value, label in loader:
            loss = F.cross_entropy(model(value), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} {loss.item():.4f}")


main()
