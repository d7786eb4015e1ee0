"""Sentiment of variable-length reviews: one learned query pools the words through nn.MultiheadAttention."""

import random

import numpy as np
import torch
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED = 21
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class Reviews(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            label = random.randint(0, 1)
            length = random.randint(5, 18)
            words = [random.randint(10, 59) for _ in range(length)]
            for _ in range(2):
                words[random.randrange(length)] = random.randint(1, 4) if label else random.randint(5, 9)
            self.items.append((torch.tensor(words), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    texts, labels = zip(*batch)
    lens = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True), lens, torch.tensor(labels)


class PooledReader(nn.Module):
    def __init__(self, vocab=60, dim=32):
        super().__init__()
        self.words = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.2)
        self.pool = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.head = nn.Linear(dim, 2)

    def forward(self, tokens, lens):
        steps = torch.arange(tokens.size(1))[None, :]
        blank = steps < lens[:, None]
        h = self.words(tokens)
        h = h + torch.relu(self.conv(h.transpose(1, 2)).transpose(1, 2))
        q = self.query.expand(tokens.size(0), -1, -1)
        pooled, weights = self.pool(q, h, h, key_padding_mask=blank, need_weights=True)
        return self.head(pooled[:, 0]), weights


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    criterion = nn.CrossEntropyLoss()
    seen = hits = 0
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for tokens, lens, labels in loader:
            logits, _ = model(tokens, lens)
            loss = criterion(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
            hits += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return total / seen, hits / seen


def add_empty_tail(batch):
    tokens, lens, labels = collate(batch)
    return nn.functional.pad(tokens, (0, 1)), lens, labels


train_loader = DataLoader(Reviews(900), 30, shuffle=True, collate_fn=add_empty_tail)
test_loader = DataLoader(Reviews(150), 50, collate_fn=add_empty_tail)
net = PooledReader()
opt = optim.Adam(net.parameters(), lr=4e-3)
for e in range(3):
    tr = run_epoch(net, train_loader, opt)
    te = run_epoch(net, test_loader)
    print(f"epoch {e} train loss {tr[0]:.3f} acc {tr[1]:.2f} | test loss {te[0]:.3f} acc {te[1]:.2f}")
