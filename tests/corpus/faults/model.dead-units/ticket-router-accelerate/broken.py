"""Routing support tickets to teams: a small encoder trained with Accelerate."""

import random

import numpy as np
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

VOCAB, TEAMS, MAX_LEN = 200, 6, 24


class Tickets(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            team = rng.randrange(TEAMS)
            words = [rng.randrange(60, VOCAB) for _ in range(rng.randint(10, MAX_LEN))]
            for spot in rng.sample(range(len(words)), 3):
                words[spot] = 2 + team * 9 + rng.randrange(9)
            self.items.append((words, team))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(items):
    ids = torch.zeros(len(items), MAX_LEN, dtype=torch.long)
    for row, (words, _) in enumerate(items):
        ids[row, : len(words)] = torch.tensor(words)
    return ids, torch.tensor([team for _, team in items])


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        nn.init.kaiming_normal_(self.up.weight, nonlinearity="relu")
        nn.init.constant_(self.up.bias, -8.0)
        nn.init.xavier_normal_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm_attn = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm_ff = nn.LayerNorm(dim)
        self.ff = FeedForward(dim, 3 * dim)

    def forward(self, x, pad):
        h = self.norm_attn(x)
        x = x + self.attn(h, h, h, key_padding_mask=pad, need_weights=False)[0]
        return x + self.ff(self.norm_ff(x))


class TicketRouter(nn.Module):
    def __init__(self, dim=40, heads=4, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.places = nn.Parameter(torch.randn(MAX_LEN, dim) * 0.02)
        self.layers = nn.ModuleList([EncoderLayer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, TEAMS)

    def forward(self, ids):
        pad = ids.eq(0)
        x = self.tokens(ids) + self.places
        for layer in self.layers:
            x = layer(x, pad)
        keep = (~pad).unsqueeze(-1).float()
        pooled = (self.norm(x) * keep).sum(1) / keep.sum(1)
        return self.head(pooled)


def main():
    set_seed(17)
    np.random.seed(17)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(Tickets(1600, 1), batch_size=32, shuffle=True, collate_fn=collate)
    test = DataLoader(Tickets(240, 2), batch_size=80, collate_fn=collate)
    model = TicketRouter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(3):
        model.train()
        total = 0.0
        for ids, team in train:
            optimizer.zero_grad()
            loss = criterion(model(ids), team)
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        right = count = 0
        with torch.no_grad():
            for ids, team in test:
                guess, truth = accelerator.gather_for_metrics((model(ids).argmax(-1), team))
                right += (guess == truth).sum().item()
                count += len(truth)
        accelerator.print(f"epoch {epoch} loss {total / len(train):.3f} accuracy {right / count:.3f}")


if __name__ == "__main__":
    main()
