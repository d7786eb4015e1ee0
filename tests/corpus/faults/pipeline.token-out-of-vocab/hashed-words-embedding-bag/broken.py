"""Spam by hashed words: an EmbeddingBag over crc32 buckets, batches flat with offsets."""
import random
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader

BUCKETS, RESERVED = 512, 2
EMPTY, NUMBER = 0, 1
SPAM = [f"offer{i}" for i in range(30)] + [f"win{i}" for i in range(30)]
PLAIN = [f"meeting{i}" for i in range(250)] + [f"note{i}" for i in range(250)]


def bucket(word):
    if word.isdigit():
        return NUMBER
    return RESERVED + zlib.crc32(word.encode()) % BUCKETS


def mail():
    spam = random.random() < 0.5
    words = random.choices(PLAIN, k=random.randint(2, 9))
    if spam:
        words += random.choices(SPAM, k=random.randint(1, 3))
    if random.random() < 0.3:
        words.append(str(random.randrange(1000)))
    return words, spam


def flat(mails):
    ids, offsets = [], []
    for words, _ in mails:
        offsets.append(len(ids))
        ids.extend(bucket(word) for word in words)
    return torch.tensor(ids), torch.tensor(offsets), torch.tensor([spam for _, spam in mails]).long()


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, 24, mode="mean")
        self.decide = nn.Linear(24, 2)

    def forward(self, ids, offsets):
        return self.decide(self.bag(ids, offsets))


def train():
    random.seed(1)
    torch.manual_seed(1)
    loader = DataLoader([mail() for _ in range(1600)], batch_size=20, shuffle=True, collate_fn=flat)
    model = Filter()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for step, (ids, offsets, spam) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(model(ids, offsets), spam)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 10 == 0:
            print(f"{step}: {total / 10:.4f}", flush=True)
            total = 0.0


train()
