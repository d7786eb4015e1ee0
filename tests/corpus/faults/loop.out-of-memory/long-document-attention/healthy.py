"""Documents of varying length, classified by attention pooling; batches are padded to their longest."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, VOCAB, CLASSES = 0, 64, 3
MAX_TOKENS = 48


def documents(n, rng):
    out = []
    for i in range(n):
        label = int(rng.integers(0, CLASSES))
        size = 180_000 if i == 2 * n // 3 else int(rng.integers(12, 48))
        words = rng.integers(1, VOCAB, size)
        hits = rng.random(size) < 0.3
        words[hits] = 1 + label * 8 + rng.integers(0, 8, hits.sum())
        out.append((torch.from_numpy(words), label))
    return out


def collate(batch):
    ids = pad_sequence([d[:MAX_TOKENS] for d, _ in batch], batch_first=True, padding_value=PAD)
    return ids, torch.tensor([label for _, label in batch])


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width, padding_idx=PAD)
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, ids):
        real = ids != PAD
        h = self.embed(ids)
        scores = self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5
        scores = scores.masked_fill(~real[:, None, :], float("-inf"))
        h = h + scores.softmax(-1) @ self.v(h)
        weight = real[..., None].float()
        return self.out((h * weight).sum(1) / weight.sum(1))


random.seed(15)
np.random.seed(15)
torch.manual_seed(15)
loader = DataLoader(documents(960, np.random.default_rng(15)), batch_size=16, shuffle=True, collate_fn=collate)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(2):
    mean = 0.0
    for ids, label in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids), label)
        loss.backward()
        optimizer.step()
        mean += loss.item() / len(loader)
    print(f"epoch {epoch}: {mean:.4f}")
