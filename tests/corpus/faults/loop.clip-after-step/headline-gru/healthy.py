import random

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed=55):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def build_corpus(vocab=40, n=600, length=17, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(vocab, 0.05), size=vocab)
    text = np.zeros((n, length), dtype=np.int64)
    text[:, 0] = rng.integers(0, vocab, n)
    for t in range(1, length):
        for i in range(n):
            text[i, t] = rng.choice(vocab, p=table[text[i, t - 1]])
    return torch.from_numpy(text)


class HeadlineModel(nn.Module):
    def __init__(self, vocab=40, emb=24, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.gru = nn.GRU(emb, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.dec = nn.Linear(hidden, vocab)

    def forward(self, x, h=None):
        y, h = self.gru(self.emb(x), h)
        return self.dec(self.drop(y)), h


def train_epoch(model, loader, optimizer, criterion, clip):
    model.train()
    total = 0.0
    for (text,) in loader:
        inputs, targets = text[:, :-1], text[:, 1:]
        optimizer.zero_grad()
        logits, _ = model(inputs)
        loss = criterion(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def perplexity(model, loader, criterion):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for (text,) in loader:
            logits, _ = model(text[:, :-1])
            total += criterion(logits.flatten(0, 1), text[:, 1:].flatten()).item()
    return float(np.exp(total / len(loader)))


def run():
    seed_everything()
    text = build_corpus()
    train = DataLoader(TensorDataset(text[:500]), batch_size=25, shuffle=True)
    valid = DataLoader(TensorDataset(text[500:]), batch_size=50)
    model = HeadlineModel()
    optimizer = optim.SGD(model.parameters(), lr=2.0)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        loss = train_epoch(model, train, optimizer, criterion, clip=0.25)
        print(f"epoch {epoch} loss {loss:.3f} valid ppl {perplexity(model, valid, criterion):.2f}")


run()
