"""Guess the missing product group of a basket: nn.MultiheadAttention, sequence-first."""

import random

import torch
from torch import nn

random.seed(21)
torch.manual_seed(21)
GROUPS, ITEMS, PAD = 8, 64, 64


def make_basket():
    theme = random.randrange(GROUPS)
    n = random.randint(3, 14)
    items = [theme * 8 + random.randrange(8) if random.random() < 0.6 else random.randrange(ITEMS) for _ in range(n)]
    return items, theme


baskets = [make_basket() for _ in range(900)]
train_set, valid_set = baskets[:768], baskets[768:]


def batches(rows, size, shuffle):
    rows = list(rows)
    if shuffle:
        random.shuffle(rows)
    for i in range(0, len(rows), size):
        part = rows[i : i + size]
        longest = max(len(items) for items, _ in part)
        ids = torch.full((longest, len(part)), PAD, dtype=torch.long)
        for j, (items, _) in enumerate(part):
            ids[: len(items), j] = torch.tensor(items)
        yield ids, torch.tensor([theme for _, theme in part])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads)
        self.ln_a = nn.LayerNorm(width)
        self.ln_b = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x, blank):
        y = self.ln_a(x)
        x = x + self.attn(y, y, y, key_padding_mask=blank, need_weights=False)[0]
        return x + self.ff(self.ln_b(x))


class BasketNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.items = nn.Embedding(ITEMS + 1, width)
        self.query = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, GROUPS))

    def forward(self, ids):
        x = torch.cat([self.query.expand(1, ids.size(1), -1), self.items(ids)], dim=0)
        blank = torch.cat([torch.zeros(1, ids.size(1), dtype=torch.bool), ids == PAD], dim=0).t()
        for block in self.blocks:
            x = block(x, blank)
        return self.head(x[0])


net = BasketNet()
adam = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    net.train()
    losses = []
    for ids, theme in batches(train_set, 32, True):
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(ids), theme)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        hits = sum((net(ids).argmax(-1) == theme).sum().item() for ids, theme in batches(valid_set, 66, False))
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, valid accuracy {hits / len(valid_set):.3f}")
