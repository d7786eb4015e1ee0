import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(45)
torch.manual_seed(45)
ANIMALS = ["cat", "dog", "hen", "fox", "owl", "pig"]
ACTS = {"cat": "purrs", "dog": "barks", "hen": "clucks", "fox": "yaps", "owl": "hoots", "pig": "grunts"}
WHEN = ["at dawn", "at noon", "at night", "all day", "in june"]


def line():
    animal = random.choice(ANIMALS)
    return f"the {animal} {ACTS[animal]} {random.choice(WHEN)}"


def build_vocab(lines):
    words = []
    for text in lines:
        for word in text.split():
            if word not in words:
                words.append(word)
    return {word: number + 1 for number, word in enumerate(words)}


class Lines(Dataset):
    def __init__(self, lines, vocab):
        self.vocab = vocab
        self.rows = [torch.tensor([self.vocab[w] for w in text.split()]) for text in lines]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class NextWord(nn.Module):
    def __init__(self, size, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(size, dim)
        self.rnn = nn.GRU(dim, 48, batch_first=True)
        self.head = nn.Linear(48, size)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


def loss_of(model, ids):
    return nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


train_lines, val_lines = [line() for _ in range(1200)], [line() for _ in range(200)]
train_set = Lines(train_lines, build_vocab(train_lines))
val_set = Lines(val_lines, build_vocab(val_lines))
model = NextWord(len(train_set.vocab) + 1)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(2):
    model.train()
    for ids in DataLoader(train_set, batch_size=24, shuffle=True):
        loss = loss_of(model, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = sum(loss_of(model, ids).item() for ids in DataLoader(val_set, batch_size=50)) / 4
    print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f}")
