"""Splice-site tagging on DNA fragments. Attention scores carry a learned bias per signed distance; fragments are bucketed by length."""
import logging
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Sampler

log = logging.getLogger("splice")
MOTIF = (2, 3, 0, 2)
IGNORE = -100


class Fragments(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.sequences, self.tags = [], []
        for _ in range(count):
            length = int(rng.choice([rng.integers(24, 49), rng.integers(49, 60)], p=[0.97, 0.03]))
            bases = rng.integers(0, 4, length)
            tags = np.zeros(length, dtype=np.int64)
            for start in rng.choice(np.arange(0, length - 6, 6), size=3, replace=False):
                bases[start : start + 4] = MOTIF
                tags[start : start + 4] = 1
            self.sequences.append(torch.from_numpy(bases))
            self.tags.append(torch.from_numpy(tags))

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return self.sequences[i], self.tags[i]


class LengthBuckets(Sampler):
    """Batches of similar length, in random order."""

    def __init__(self, lengths, batch_size, generator):
        self.order = np.argsort(lengths, kind="stable")
        self.batch_size = batch_size
        self.generator = generator

    def __len__(self):
        return -(-len(self.order) // self.batch_size)

    def __iter__(self):
        batches = [self.order[i : i + self.batch_size].tolist() for i in range(0, len(self.order), self.batch_size)]
        for i in torch.randperm(len(batches), generator=self.generator).tolist():
            yield batches[i]


def collate(rows):
    x = nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True, padding_value=4)
    y = nn.utils.rnn.pad_sequence([r[1] for r in rows], batch_first=True, padding_value=IGNORE)
    return x, y


class DistanceAttention(nn.Module):
    def __init__(self, dim, heads, reach):
        super().__init__()
        self.heads, self.reach = heads, reach
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        self.distance_bias = nn.Parameter(torch.zeros(2 * reach + 1, heads))
        nn.init.normal_(self.distance_bias, std=1.0)

    def forward(self, x, pad):
        b, t, d = x.shape
        q = self.query(x).view(b, t, self.heads, -1)
        k = self.key(x).view(b, t, self.heads, -1)
        v = self.value(x).view(b, t, self.heads, -1)
        place = torch.arange(t, device=x.device)
        distance = place[None, :] - place[:, None]
        bias = self.distance_bias[distance + self.reach].permute(2, 0, 1)
        score = torch.einsum("bqhd,bkhd->bhqk", q, k) / (d // self.heads) ** 0.5 + bias
        score = score.masked_fill(pad[:, None, None, :], -1e9)
        mixed = torch.einsum("bhqk,bkhd->bqhd", score.softmax(-1), v)
        return self.output(mixed.reshape(b, t, d))


class Tagger(nn.Module):
    def __init__(self, dim=32, heads=8, depth=2, reach=48):
        super().__init__()
        self.bases = nn.Embedding(5, dim, padding_idx=4)
        self.attention = nn.ModuleList(DistanceAttention(dim, heads, reach) for _ in range(depth))
        self.feed = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth + 1))
        self.tag = nn.Linear(dim, 2)

    def forward(self, x):
        pad = x == 4
        h = self.bases(x)
        for i, (attend, feed) in enumerate(zip(self.attention, self.feed)):
            h = h + attend(self.norms[2 * i](h), pad)
            h = h + feed(self.norms[2 * i + 1](h))
        return self.tag(self.norms[-1](h))


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    data = Fragments(1300, 6)
    buckets = LengthBuckets([len(s) for s in data.sequences], 20, torch.Generator().manual_seed(2))
    loader = DataLoader(data, batch_sampler=buckets, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss(ignore_index=IGNORE)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            loss = loss_fn(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 12 == 0:
                log.info("epoch %d step %d  length %d  loss %.4f", epoch, step, x.size(1), loss.item())


if __name__ == "__main__":
    main()
