"""Sentiment-like classification of padded token sequences with nn.MultiheadAttention layers."""
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

SEED = 11
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

PAD = 0
VOCAB = 40
HEADS = 4


def make_split(n):
    """Words 1..19 speak against, words 20..39 in favour; the majority decides."""
    rows = []
    for _ in range(n):
        length = random.randint(9, 16)
        share = random.choice([0.25, 0.75])
        words = [random.randrange(20, VOCAB) if random.random() < share else random.randrange(1, 20) for _ in range(length)]
        rows.append((torch.tensor(words), int(sum(w >= 20 for w in words) * 2 > length)))
    return rows


def collate(rows):
    tokens = pad_sequence([r[0] for r in rows], batch_first=True, padding_value=PAD)
    return tokens, torch.tensor([r[1] for r in rows])


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, HEADS, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, attn_mask):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=attn_mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self, dim=32, depth=2, max_len=16):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(max_len, dim)
        nn.init.normal_(self.tok.weight, std=0.5)
        nn.init.normal_(self.pos.weight, std=0.1)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens):
        batch, length = tokens.shape
        is_pad = tokens == PAD
        # one (length, length) mask per example and head, True where a key may not be looked at
        attn_mask = is_pad[:, None, :].expand(batch, length, length)
        attn_mask = attn_mask.repeat(HEADS, 1, 1)
        x = self.tok(tokens) + self.pos(torch.arange(length))
        for block in self.blocks:
            x = block(x, attn_mask)
        real = (~is_pad).unsqueeze(-1).float()
        pooled = (self.norm(x) * real).sum(1) / real.sum(1)
        return self.out(pooled)


train_loader = DataLoader(make_split(960), batch_size=32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(make_split(160), batch_size=32, collate_fn=collate)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(3):
    model.train()
    total = 0.0
    for tokens, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    model.eval()
    hits = 0
    with torch.no_grad():
        for tokens, labels in valid_loader:
            hits += (model(tokens).argmax(1) == labels).sum().item()
    print(f"epoch {epoch} train loss {total / 960:.4f} valid accuracy {hits / 160:.3f}")
