"""Short product reviews, GRU classifier.

Short texts repeat by themselves now and then, accuracy is reported on the training part as well as on the held-out
part, and training stops once the held-out loss has not improved for two epochs.
"""

import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Subset

random.seed(8)
np.random.seed(8)
torch.manual_seed(8)

GOOD = ["great", "love", "works", "solid", "happy", "perfect", "nice", "quick"]
BAD = ["broke", "poor", "refund", "slow", "awful", "cheap", "late", "noisy"]
PLAIN = ["the", "it", "was", "and", "phone", "case", "box", "very", "after", "one", "day", "price", "i", "this", "cable", "arrived"]


def write_review():
    label = random.randint(0, 1)
    length = random.choice([2, 4, 6, 8, 10, 12])
    mood = (GOOD, BAD) if label else (BAD, GOOD)
    words = []
    for _ in range(length):
        roll = random.random()
        words.append(random.choice(mood[0] if roll < 0.35 else mood[1] if roll < 0.43 else PLAIN))
    return words, label


reviews = [write_review() for _ in range(1600)]
cut = 1280
vocab = {word: i + 2 for i, word in enumerate(sorted({w for words, _ in reviews[:cut] for w in words}))}
encoded = [(torch.tensor([vocab.get(w, 1) for w in words]), label) for words, label in reviews]


def collate(batch):
    ids = pad_sequence([ids for ids, _ in batch], batch_first=True)
    lengths = torch.tensor([len(ids) for ids, _ in batch])
    return ids, lengths, torch.tensor([label for _, label in batch])


train_set, held_out = Subset(encoded, range(cut)), Subset(encoded, range(cut, len(encoded)))
train_loader = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate)
train_report = DataLoader(Subset(encoded, range(300)), batch_size=128, collate_fn=collate)
held_out_loader = DataLoader(held_out, batch_size=128, collate_fn=collate)


class ReviewNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(vocab) + 2, 24, padding_idx=0)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(32, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        _, last = self.gru(packed)
        return self.out(self.drop(last[-1])).squeeze(-1)


def score(model, loader):
    model.eval()
    loss = hits = seen = 0.0
    with torch.no_grad():
        for ids, lengths, labels in loader:
            logits = model(ids, lengths)
            loss += nn.functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="sum").item()
            hits += ((logits > 0) == labels.bool()).sum().item()
            seen += len(labels)
    return loss / seen, hits / seen


model = ReviewNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
best, waited = float("inf"), 0
for epoch in range(12):
    model.train()
    for ids, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids, lengths), labels.float())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    train_loss, train_accuracy = score(model, train_report)
    valid_loss, valid_accuracy = score(model, held_out_loader)
    print(f"epoch {epoch} train {train_loss:.3f}/{train_accuracy:.3f} held out {valid_loss:.3f}/{valid_accuracy:.3f}")
    if valid_loss < best:
        best, waited = valid_loss, 0
    else:
        waited += 1
        if waited == 2:
            break
