"""Tags every token of a log line: a token's role depends on the token right before it."""

import random

import numpy as np
import torch
from torch import nn, optim

torch.manual_seed(1234)
np.random.seed(1234)
random.seed(1234)

KEYS = {"user": 1, "host": 2, "port": 3}
WORDS = [f"w{i}" for i in range(20)]
ITOS = ["<pad>", *list(KEYS), *WORDS]
STOI = {w: i for i, w in enumerate(ITOS)}
IGNORE = -100


def sample_line():
    tokens, tags = [], []
    while len(tokens) < random.randint(8, 16):
        if random.random() < 0.4:
            key = random.choice(list(KEYS))
            tokens += [key, random.choice(WORDS)]
            tags += [0, KEYS[key]]
        else:
            tokens.append(random.choice(WORDS))
            tags.append(0)
    return [STOI[t] for t in tokens], tags


def batchify(lines):
    longest = max(len(t) for t, _ in lines)
    x = torch.zeros(longest, len(lines), dtype=torch.long)
    y = torch.full((longest, len(lines)), IGNORE)
    for col, (tokens, tags) in enumerate(lines):
        x[: len(tokens), col] = torch.tensor(tokens)
        y[: len(tags), col] = torch.tensor(tags)
    return x, y


class Sinusoids(nn.Module):
    def __init__(self, dim, limit=40):
        super().__init__()
        angle = torch.arange(limit).unsqueeze(1) / 10000 ** (torch.arange(0, dim, 2) / dim)
        self.register_buffer("code", torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).unsqueeze(1))

    def forward(self, x):
        return x + self.code[: x.size(0)]


class Tagger(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2, tags=4):
        super().__init__()
        self.embed = nn.Embedding(len(ITOS), dim, padding_idx=0)
        self.sinusoids = Sinusoids(dim)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, heads, 96, dropout=0.0), layers)
        self.tag = nn.Linear(dim, tags)

    def forward(self, x):
        h = self.embed(x)
        h = self.sinusoids(h)
        h = self.body(h, src_key_padding_mask=(x == 0).t())
        return self.tag(h)


train_lines = [sample_line() for _ in range(1500)]
dev_lines = [sample_line() for _ in range(200)]
tagger = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
optimizer = optim.Adam(tagger.parameters(), lr=1e-3)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))

step = 0
for epoch in range(5):
    random.shuffle(train_lines)
    tagger.train()
    for i in range(0, len(train_lines), 30):
        x, y = batchify(train_lines[i : i + 30])
        loss = criterion(tagger(x).view(-1, 4), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    tagger.eval()
    with torch.no_grad():
        x, y = batchify(dev_lines)
        known = y != IGNORE
        print(f"epoch {epoch} dev accuracy {(tagger(x).argmax(-1) == y)[known].float().mean().item():.3f}")
