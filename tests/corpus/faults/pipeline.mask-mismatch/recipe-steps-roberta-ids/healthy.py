"""Cuisine of a recipe from its steps; hand-written einsum attention, mask handed over by the batcher."""
import random

import numpy as np
import torch
from torch import nn, optim

START, STOP, BLANK = 0, 2, 1
FIRST_WORD = 3
NUM_WORDS, NUM_CUISINES = 120, 5


def cook_book(size, rng):
    """Every recipe names its cuisine's closing gesture near the end and shares the rest of the words with all others."""
    book = []
    for _ in range(size):
        cuisine = int(rng.integers(NUM_CUISINES))
        words = rng.integers(FIRST_WORD, 100, size=int(rng.integers(5, 16))).tolist()
        hints = rng.integers(100 + 4 * cuisine, 104 + 4 * cuisine, size=2)
        words[-1] = int(hints[0])
        if rng.random() < 0.4:
            words[len(words) // 2] = int(hints[1])
        book.append((words, cuisine))
    return book


class Batcher:
    def __init__(self, book, size, rng=None):
        self.book, self.size, self.rng = book, size, rng

    def __len__(self):
        return -(-len(self.book) // self.size)

    def __iter__(self):
        order = np.arange(len(self.book)) if self.rng is None else self.rng.permutation(len(self.book))
        for at in range(0, len(order), self.size):
            part = [self.book[k] for k in order[at : at + self.size]]
            longest = max(len(words) for words, _ in part) + 2
            ids = torch.full((len(part), longest), BLANK)
            mask = torch.zeros(len(part), longest)
            for row, (words, _) in enumerate(part):
                framed = [START, *words, STOP]
                ids[row, : len(framed)] = torch.tensor(framed)
                mask[row, : len(framed)] = 1.0
            yield ids, mask, torch.tensor([c for _, c in part])


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size))

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * self.size**-0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e9)
        return self.o(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(-2))


class CuisineModel(nn.Module):
    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.word = nn.Embedding(NUM_WORDS, dim)
        self.position = nn.Embedding(32, dim)
        self.attention = nn.ModuleList([Attention(dim, heads) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2)])
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, NUM_CUISINES))

    def forward(self, ids, mask):
        x = self.word(ids) + self.position(torch.arange(ids.size(1)))
        for norm, attention in zip(self.norms, self.attention, strict=True):
            x = x + attention(norm(x), mask)
        weight = mask / mask.sum(1, keepdim=True)
        return self.mlp(torch.einsum("bt,btd->bd", weight, x))


if __name__ == "__main__":
    random.seed(23)
    torch.manual_seed(23)
    np.random.seed(23)
    rng = np.random.default_rng(23)
    train, test = Batcher(cook_book(1000, rng), 25, rng), Batcher(cook_book(250, rng), 50)
    model = CuisineModel()
    opt = optim.Adam(model.parameters(), lr=3e-3)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, 3 * len(train), eta_min=3e-4)
    ce = nn.CrossEntropyLoss()
    for epoch in range(3):
        model.train()
        losses = []
        for ids, mask, cuisine in train:
            opt.zero_grad()
            loss = ce(model(ids, mask), cuisine)
            loss.backward()
            opt.step()
            sched.step()
            losses.append(loss.detach())
        model.eval()
        with torch.no_grad():
            right = torch.cat([model(i, m).argmax(1) == c for i, m, c in test]).float().mean()
        print(f"{epoch}: loss {torch.stack(losses).mean():.4f} accuracy {right:.3f}")
