"""Masked words in delivery notes that all follow one template: at the same place of two notes mostly the same word stands.
Batch first, sine codes cut out of a longer table, and only masked places have a target."""
import math

import torch
from torch import nn

WORDS = ["<none>", "<mask>", "note", "no", ":", "from", "to", "weighs", "kg", "paid", "by", "on", "day", "signed", "."]
TOWNS = [f"town{i}" for i in range(8)]
DIGITS = [str(i) for i in range(10)]
WAYS, NAMES = ["cash", "card", "bill"], [f"clerk{i}" for i in range(6)]
VOCAB = WORDS + TOWNS + DIGITS + WAYS + NAMES
ID = {w: i for i, w in enumerate(VOCAB)}
TARIFF = {town: WAYS[i % 3] for i, town in enumerate(TOWNS)}  # who lives there pays like that
CLERK = {town: NAMES[i % 6] for i, town in enumerate(TOWNS)}


def pick(items, gen):
    return items[int(torch.randint(len(items), (1,), generator=gen))]


def note(gen):
    start, goal = pick(TOWNS, gen), pick(TOWNS, gen)
    text = f"note no : {pick(DIGITS, gen)} from {start} to {goal} weighs {pick(DIGITS, gen)} kg paid by {TARIFF[goal]} on day : "
    text += f"{pick(DIGITS, gen)} signed by {CLERK[start]} ."
    return torch.tensor([ID[w] for w in text.split()])


def masked(ids, gen):
    chosen = torch.rand(ids.shape, generator=gen) < 0.2
    target = torch.where(chosen, ids, 0)
    how = torch.rand(ids.shape, generator=gen)
    shown = torch.where(chosen & (how < 0.8), ID["<mask>"], ids)
    odd = torch.randint(2, len(VOCAB), ids.shape, generator=gen)
    return torch.where(chosen & (how > 0.9), odd, shown), target


class Codes(nn.Module):
    def __init__(self, dim, longest=256):
        super().__init__()
        place = torch.arange(longest).float().unsqueeze(1)
        rate = (torch.arange(0, dim, 2).float() * -(math.log(10000.0) / dim)).exp()
        table = torch.stack([(place * rate).sin(), (place * rate).cos()], 2).reshape(longest, dim)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, ids):
        return self.table[:, : ids.size(1)]


class Filler(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.words, self.codes = nn.Embedding(len(VOCAB), dim), Codes(dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, len(VOCAB))

    def forward(self, ids):
        return self.out(self.layers(self.words(ids) + self.codes(ids)))


def main():
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    notes = torch.stack([note(gen) for _ in range(600)])
    model = Filler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    for epoch in range(6):
        order = torch.randperm(len(notes), generator=gen)
        for rows in order.split(32):
            shown, target = masked(notes[rows], gen)
            loss = criterion(model(shown).transpose(1, 2), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
