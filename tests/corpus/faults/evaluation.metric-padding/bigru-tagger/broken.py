"""Named-entity tags for sentences of different lengths: bidirectional GRU over packed sequences."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(83)
torch.manual_seed(83)

PAD, VOCAB, TAGS = 0, 50, 4
TAG_PAD = 0


def sentence():
    """Tags 1-3; a word's tag depends on the word and on whether a title (1) stands before it."""
    n = random.randint(4, 20)
    words = [random.randrange(2, VOCAB) if random.random() < 0.8 else 1 for _ in range(n)]
    tags = [3 if i and words[i - 1] == 1 else 1 + w % 2 for i, w in enumerate(words)]
    return torch.tensor(words), torch.tensor(tags)


def batches(data, size, shuffle):
    order = list(range(len(data)))
    if shuffle:
        random.shuffle(order)
    for start in range(0, len(order), size):
        words, tags = zip(*(data[i] for i in order[start : start + size]))
        lengths = torch.tensor([len(w) for w in words])
        yield pad_sequence(words, batch_first=True, padding_value=PAD), pad_sequence(
            tags, batch_first=True, padding_value=TAG_PAD
        ), lengths


class EntityTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24, padding_idx=PAD)
        self.gru = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(states)


train, dev = [sentence() for _ in range(800)], [sentence() for _ in range(200)]
model = EntityTagger()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
criterion = nn.CrossEntropyLoss(ignore_index=TAG_PAD)
for epoch in range(3):
    model.train()
    total = steps = 0
    for words, tags, lengths in batches(train, 32, shuffle=True):
        loss = criterion(model(words, lengths).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, steps = total + loss.item(), steps + 1
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for words, tags, lengths in batches(dev, 50, shuffle=False):
            predicted = model(words, lengths).argmax(-1)
            hits += (predicted == tags).sum().item()
            count += tags.numel()
    print(f"epoch {epoch} loss {total / steps:.4f} dev tag accuracy {hits / count:.4f}")
