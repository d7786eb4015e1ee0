"""Next-click prediction over left-padded sessions; histories longer than the table are cut to their newest part."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

PAGES, CONTEXT, PAD = 24, 10, 0


def sessions(count, seed):
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        clicks = [rng.randint(1, PAGES)]
        stride = rng.choice([2, 5])
        for _ in range(rng.randint(2, 16)):
            clicks.append((clicks[-1] + stride - 1) % PAGES + 1 if rng.random() < 0.93 else rng.randint(1, PAGES))
        made.append(clicks)
    return made


class Clicks(Dataset):
    def __init__(self, made):
        self.made = made

    def __len__(self):
        return len(self.made)

    def __getitem__(self, index):
        clicks = self.made[index]
        history = clicks[:-1][-CONTEXT:]
        row = np.zeros(CONTEXT, dtype=np.int64)
        row[CONTEXT - len(history) :] = history
        return row, clicks[-1]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, x, hidden):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Recommender(nn.Module):
    def __init__(self, width=40, heads=4, depth=2):
        super().__init__()
        self.pages = nn.Embedding(PAGES + 1, width, padding_idx=PAD)
        self.ago = nn.Embedding(CONTEXT, width)
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.05), nn.Linear(2 * width, width)) for _ in range(depth)
        )
        self.bias = nn.Parameter(torch.zeros(PAGES + 1))

    def forward(self, rows):
        steps = rows.size(1)
        future = torch.ones(steps, steps, dtype=torch.bool, device=rows.device).triu(1)
        itself = torch.eye(steps, dtype=torch.bool, device=rows.device)
        # A padding row sees itself alone, so no row of the scores is empty.
        hidden = (future | (rows == PAD)[:, None, :]) & ~itself
        x = self.pages(rows) + self.ago(torch.arange(steps - 1, -1, -1, device=rows.device))
        for i, (attention, mlp) in enumerate(zip(self.attentions, self.mlps)):
            x = x + attention(self.norms[2 * i](x), hidden[:, None])
            x = x + mlp(self.norms[2 * i + 1](x))
        return x[:, -1] @ self.pages.weight.T / math.sqrt(x.size(-1)) + self.bias


def main():
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    train = DataLoader(Clicks(sessions(1500, 1)), batch_size=50, shuffle=True)
    valid = DataLoader(Clicks(sessions(300, 2)), batch_size=100)
    model = Recommender()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(5):
        model.train()
        losses = []
        for rows, target in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        hits = total = 0
        with torch.no_grad():
            for rows, target in valid:
                logits = model(rows)
                logits[:, PAD] = -math.inf  # padding is never recommended
                hits += (logits.topk(3).indices == target[:, None]).any(1).sum().item()
                total += len(target)
        print(f"epoch {epoch} loss {np.mean(losses):.3f} hit@3 {hits / total:.3f}")


if __name__ == "__main__":
    main()
