"""Severity of firmware messages; ids are padded up to a round length so that kernels see few shapes."""
import random
import re

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(404)
np.random.seed(404)
torch.manual_seed(404)

PARTS = ["fan", "psu", "disk", "nic", "bmc", "dimm", "cpu", "raid"]
STATES = {0: ["ok", "idle", "synced"], 1: ["slow", "retry", "late"], 2: ["lost", "dead", "halted"]}
PAD_MULTIPLE = 64


def message():
    severity = random.randrange(3)
    words = [f"[{random.randrange(50)}]", random.choice(PARTS), str(random.randrange(9)), random.choice(STATES[severity])]
    words += random.choices([*PARTS, "unit", "bus", "slot", "after", "while"], k=random.randint(2, 9))
    tail = words[1:]
    random.shuffle(tail)
    return " ".join(words[:1] + tail), severity


def tokens(text):
    return re.findall(r"[a-z]+|\d+|\S", text)


rows = [message() for _ in range(1440)]
vocab = {w: k for k, w in enumerate(["<blank>", "<other>", *sorted({w for t, _ in rows[:1200] for w in tokens(t)})])}


def collate(batch):
    encoded = [[vocab.get(w, 1) for w in tokens(text)] for text, _ in batch]
    width = -(-max(map(len, encoded)) // PAD_MULTIPLE) * PAD_MULTIPLE
    ids = torch.tensor([e + [0] * (width - len(e)) for e in encoded])
    return ids, torch.tensor([s for _, s in batch])


class Pooler(nn.Module):
    """Learned query attention over the tokens."""

    def __init__(self, dim):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.attend = nn.MultiheadAttention(dim, 2, batch_first=True)

    def forward(self, h, blank):
        out, _ = self.attend(self.query.expand(len(h), -1, -1), h, h, key_padding_mask=blank, need_weights=False)
        return out.squeeze(1)


class Severity(nn.Module):
    def __init__(self, size, dim=32):
        super().__init__()
        self.embed = nn.Embedding(size, dim, padding_idx=0)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.pool = Pooler(dim)
        self.out = nn.Linear(dim, 3)

    def forward(self, ids):
        h = self.embed(ids)
        h = h + self.mix(h)
        return self.out(self.pool(h, ids == 0))


train_loader = DataLoader(rows[:1200], batch_size=32, shuffle=True, collate_fn=collate)
test_loader = DataLoader(rows[1200:], batch_size=80, collate_fn=collate)
model = Severity(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    model.train()
    total = 0.0
    for ids, severity in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), severity)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(ids).argmax(1) == s).sum().item() for ids, s in test_loader)
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {hits / len(rows[1200:]):.3f}")
