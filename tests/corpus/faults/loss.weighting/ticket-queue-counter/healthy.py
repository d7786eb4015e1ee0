"""Route support tickets to a queue. Queues differ a lot in size, so the loss is weighted by inverse frequency."""

import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

QUEUES = ["billing", "login", "shipping", "refund", "legal"]
SHARES = [0.56, 0.22, 0.12, 0.06, 0.04]
VOCAB, LENGTH = 200, 16


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Tickets(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        topic = np.random.default_rng(40).dirichlet(np.full(VOCAB, 0.25), size=len(QUEUES))
        self.queue = [int(rng.choice(len(QUEUES), p=SHARES)) for _ in range(n)]
        self.words = []
        for q in self.queue:
            mixed = 0.35 * topic[q] + 0.65 / VOCAB
            self.words.append(rng.choice(VOCAB, size=LENGTH, p=mixed))

    def __len__(self):
        return len(self.queue)

    def __getitem__(self, i):
        return torch.from_numpy(self.words[i]), self.queue[i]


class TextCnn(nn.Module):
    def __init__(self, dim=32, filters=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, filters, k, padding=k // 2) for k in (1, 3))
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * filters, len(QUEUES))

    def forward(self, words):
        x = self.embed(words).transpose(1, 2)
        pooled = torch.cat([torch.relu(conv(x)).mean(-1) for conv in self.convs], dim=-1)
        return self.out(self.drop(pooled))


def inverse_frequency(dataset):
    counts = Counter(dataset.queue)
    total = sum(counts.values())
    return torch.tensor([total / (len(counts) * c) for _, c in sorted(counts.items())])


def recall_per_queue(model, loader):
    model.eval()
    hit, seen = torch.zeros(len(QUEUES)), torch.zeros(len(QUEUES))
    with torch.no_grad():
        for words, queue in loader:
            right = model(words).argmax(-1) == queue
            hit.index_add_(0, queue, right.float())
            seen.index_add_(0, queue, torch.ones(len(queue)))
    return hit / seen.clamp(min=1)


def main():
    seed_all(26)
    train_set, valid_set = Tickets(1800, 82), Tickets(500, 27)
    train_loader = DataLoader(train_set, batch_size=60, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=250)
    model = TextCnn()
    criterion = nn.CrossEntropyLoss(weight=inverse_frequency(train_set))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        running = 0.0
        for words, queue in train_loader:
            loss = criterion(model(words), queue)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        recall = recall_per_queue(model, valid_loader)
        print(f"epoch {epoch} loss {running / len(train_loader):.3f} recall", dict(zip(QUEUES, recall.numpy().round(2).tolist())))


if __name__ == "__main__":
    main()
