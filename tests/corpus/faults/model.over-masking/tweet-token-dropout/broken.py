"""Sentiment of short messages. Tokens are hidden from attention at random while training, as a regulariser."""

import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
SEED = 3
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

POSITIVE = [f"good{i}" for i in range(12)]
NEGATIVE = [f"bad{i}" for i in range(12)]
NEUTRAL = [f"word{i}" for i in range(40)]
vocab = {"<pad>": 0, "<unk>": 1}
for word in POSITIVE + NEGATIVE + NEUTRAL:
    vocab[word] = len(vocab)


def write_message():
    label = random.randint(0, 1)
    length = random.choice([3, 4, 5, 6, 8, 10, 12])
    words = [random.choice(NEUTRAL) for _ in range(length)]
    for i in random.sample(range(length), max(1, length // 2)):
        words[i] = random.choice(POSITIVE if label else NEGATIVE)
    return " ".join(words), label


def encode(batch):
    rows = [[vocab.get(w, 1) for w in text.split()] for text, _ in batch]
    width = max(map(len, rows))
    ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    return ids, torch.tensor([float(label) for _, label in batch])


def attend(x, w_qkv, w_out, heads, hidden_keys):
    b, t, d = x.shape
    q, k, v = (x @ w_qkv).reshape(b, t, 3, heads, d // heads).unbind(2)
    scores = torch.einsum("bqhc,bkhc->bhqk", q, k) * (d // heads) ** -0.5
    scores = scores.masked_fill(hidden_keys[:, None, None, :], float("-inf"))
    mixed = torch.einsum("bhqk,bkhc->bqhc", scores.softmax(-1), v)
    return mixed.reshape(b, t, d) @ w_out


class SentimentNet(nn.Module):
    def __init__(self, dim=32, heads=2, word_drop=0.2):
        super().__init__()
        self.heads, self.word_drop = heads, word_drop
        self.emb = nn.Embedding(len(vocab), dim, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(16, dim) * 0.02)
        self.w_qkv = nn.Parameter(torch.empty(dim, 3 * dim))
        self.w_out = nn.Parameter(torch.empty(dim, dim))
        nn.init.xavier_uniform_(self.w_qkv)
        nn.init.xavier_uniform_(self.w_out)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.score = nn.Linear(dim, 1)

    def forward(self, ids):
        pad = ids == 0
        hidden_keys = pad
        if self.training:
            dropped = torch.rand(ids.shape) < self.word_drop
            hidden_keys = pad | dropped
        x = self.emb(ids) + self.pos[: ids.size(1)]
        x = x + attend(self.norm1(x), self.w_qkv, self.w_out, self.heads, hidden_keys)
        x = x + self.ff(self.norm2(x))
        keep = (~pad).unsqueeze(-1).to(x.dtype)
        return self.score((x * keep).sum(1) / keep.sum(1)).squeeze(-1)


train = [write_message() for _ in range(960)]
valid = [write_message() for _ in range(200)]
net = SentimentNet()
opt = torch.optim.RAdam(net.parameters(), lr=2e-3)

for epoch in range(4):
    net.train()
    order = torch.randperm(len(train)).tolist()
    for n, start in enumerate(range(0, len(order), 24)):
        ids, y = encode([train[i] for i in order[start : start + 24]])
        loss = F.binary_cross_entropy_with_logits(net(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if n % 10 == 0:
            print(f"epoch {epoch} batch {n} loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        ids, y = encode(valid)
        print(f"epoch {epoch} valid accuracy {((net(ids) > 0).float() == y).float().mean().item():.3f}")
