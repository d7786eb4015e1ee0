"""Extractive question answering in miniature: find where the answer starts and ends in a passage."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

PAD, VOCAB = 0, 60
MAX_LEN = 24


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Passages(Dataset):
    """An opening marker (token 1..5, named by the question) is followed by the answer, a closing marker (6..10) ends it."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            length = int(rng.integers(14, MAX_LEN + 1))
            words = rng.integers(11, VOCAB, length)
            kinds = rng.permutation(5)[:2]
            first = int(rng.integers(0, length // 2 - 3))
            second = int(rng.integers(length // 2, length - 3))
            for kind, at in zip(kinds, (first, second)):
                words[at], words[at + 2] = 1 + kind, 6 + kind
            pick = int(rng.integers(0, 2))
            start = (first, second)[pick]
            self.rows.append((words.tolist(), int(kinds[pick]), start, start + 2))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    words, kind, start, end = zip(*rows)
    padded = torch.full((len(rows), MAX_LEN), PAD)
    for i, w in enumerate(words):
        padded[i, : len(w)] = torch.tensor(w)
    return padded, torch.tensor(kind), torch.tensor(start), torch.tensor(end)


class SpanReader(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.words = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.question = nn.Embedding(5, d)
        self.mixer = nn.GRU(d, d // 2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(d)
        self.pointer = nn.ModuleDict({"start": nn.Linear(d, d), "end": nn.Linear(d, d)})

    def score(self, which, h, q, pad):
        s = torch.einsum("btd,bd->bt", self.pointer[which](h), q) / h.size(-1) ** 0.5
        s = s.masked_fill(pad, torch.finfo(s.dtype).min)
        return s

    def forward(self, passage, kind):
        pad = passage == PAD
        q = self.question(kind)
        x = self.words(passage)
        mixed, _ = self.mixer(x)
        h = self.norm(x + mixed)
        return self.score("start", h, q, pad), self.score("end", h, q, pad)


def main():
    set_seed(17)
    train = DataLoader(Passages(1600, 1), batch_size=64, shuffle=True, collate_fn=collate)
    dev = DataLoader(Passages(256, 2), batch_size=128, collate_fn=collate)
    reader = SpanReader()
    opt = torch.optim.AdamW(reader.parameters(), lr=1e-2, weight_decay=0.0)
    for epoch in range(4):
        reader.train()
        seen = []
        for passage, kind, start, end in train:
            at_start, at_end = reader(passage, kind)
            loss = 0.5 * (F.cross_entropy(at_start, start) + F.cross_entropy(at_end, end))
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen.append(loss.item())
        reader.eval()
        exact = []
        with torch.no_grad():
            for passage, kind, start, end in dev:
                at_start, at_end = reader(passage, kind)
                exact.append(((at_start.argmax(1) == start) & (at_end.argmax(1) == end)).float().mean().item())
        print(f"epoch {epoch} loss {np.mean(seen):.3f} exact match {np.mean(exact):.3f}")


if __name__ == "__main__":
    main()
