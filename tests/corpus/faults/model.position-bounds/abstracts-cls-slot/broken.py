"""Field of study from abstracts cut to MAX_TOKENS words; a summary slot is put in front."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

MAX_TOKENS, VOCAB, FIELDS = 40, 90, 5


def make_abstract(rng):
    field = int(rng.integers(FIELDS))
    length = min(int(rng.gamma(6.0, 2.6)) + 6, 60)
    words = rng.integers(1 + FIELDS * 8, VOCAB, size=length)
    topical = rng.random(length) < 0.25
    topical[0] = True
    words[topical] = 1 + 8 * field + rng.integers(0, 8, size=int(topical.sum()))
    return words, field


def to_batch(abstracts):
    texts = [words[:MAX_TOKENS] for words, _ in abstracts]
    ids = np.zeros((len(texts), max(map(len, texts))), dtype=np.int64)
    for row, words in enumerate(texts):
        ids[row, : len(words)] = words
    return torch.from_numpy(ids), torch.tensor([f for _, f in abstracts])


class Reader(nn.Module):
    def __init__(self, width=40, heads=4):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, width, padding_idx=0)
        self.pos = nn.Embedding(MAX_TOKENS, width)
        self.slot = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 80), nn.GELU(), nn.Linear(80, width))
        self.cls = nn.Linear(width, FIELDS)

    def forward(self, ids):
        batch = ids.size(0)
        x = torch.cat([self.slot.expand(batch, -1, -1), self.tok(ids)], dim=1)
        x = x + self.pos(torch.arange(x.size(1)))
        hidden = torch.cat([torch.zeros(batch, 1, dtype=torch.bool), ids == 0], dim=1)
        h = self.ln1(x)
        x = x + self.attn(h, h, h, key_padding_mask=hidden, need_weights=False)[0]
        x = x + self.ff(self.ln2(x))
        return self.cls(x[:, 0])


def main(seed=66):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    train = [make_abstract(rng) for _ in range(900)]
    test = [make_abstract(rng) for _ in range(150)]
    reader = Reader()
    opt = torch.optim.NAdam(reader.parameters(), lr=2e-3)
    for epoch in range(4):
        reader.train()
        order = rng.permutation(len(train))
        for n in range(0, len(order), 12):
            ids, fields = to_batch([train[i] for i in order[n : n + 12]])
            loss = F.cross_entropy(reader(ids), fields)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if n % 240 == 0:
                print(f"epoch {epoch} seen {n} loss {loss.item():.3f}")
        reader.eval()
        with torch.no_grad():
            ids, fields = to_batch(test)
            print(f"epoch {epoch} test accuracy {(reader(ids).argmax(1) == fields).float().mean().item():.3f}")


main()
