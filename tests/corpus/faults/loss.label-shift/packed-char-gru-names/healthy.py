"""Character GRU over made-up names: packed sequences, loss on the packed data."""

import random
import string

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

CHARS = ["<s>", "</s>"] + list(string.ascii_lowercase)
INDEX = {c: i for i, c in enumerate(CHARS)}


def invent(rng):
    parts = ["ka", "mo", "ri", "ten", "lo", "sha", "ve", "bur", "din"]
    return "".join(rng.choice(parts) for _ in range(rng.randint(2, 4)))


def encode(name):
    return torch.tensor([INDEX["<s>"]] + [INDEX[c] for c in name] + [INDEX["</s>"]])


class NameModel(nn.Module):
    def __init__(self, size, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(size, 24)
        self.rnn = nn.GRU(24, hidden)
        self.out = nn.Linear(hidden, size)

    def forward(self, packed):
        embedded = packed._replace(data=self.embed(packed.data))
        hidden, _ = self.rnn(embedded)
        return self.out(hidden.data)


def batches(names, size, rng):
    names = names[:]
    rng.shuffle(names)
    for i in range(0, len(names), size):
        seqs = [encode(n) for n in names[i : i + size]]
        source = pack_sequence([s[:-1] for s in seqs], enforce_sorted=False)
        target = pack_sequence([s[1:] for s in seqs], enforce_sorted=False)
        yield source, target


def main():
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    rng = random.Random(2)
    names = [invent(rng) for _ in range(900)]
    model = NameModel(len(CHARS))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(3):
        total = count = 0
        for source, target in batches(names, 30, rng):
            loss = nn.functional.cross_entropy(model(source), target.data)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
            count += 1
        print(f"epoch {epoch} loss {total / count:.3f}")


main()
