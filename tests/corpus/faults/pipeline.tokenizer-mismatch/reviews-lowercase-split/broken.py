"""Film reviews, word by word, with a mean of embeddings; the vocabulary comes from the training reviews."""
import collections
import random
import re

import torch
import torch.nn.functional as F
from torch import nn

GOOD = ["Wonderful", "moving", "Funny", "clever", "Bright"]
BAD = ["Dull", "tedious", "Flat", "clumsy", "Loud"]
NEUTRAL = ["The", "film", "Plot", "was", "with", "Actors", "and", "a", "Scene", "long", "It", "Director"]
UNKNOWN, PAD = 1, 0


def review():
    good = random.random() < 0.5
    words = random.choices(NEUTRAL, k=random.randint(4, 12))
    for _ in range(2):
        words.insert(random.randrange(len(words)), random.choice(GOOD if good else BAD))
    return " ".join(words) + ".", int(good)


def tokenize(text, lower):
    return re.findall(r"\w+", text.lower() if lower else text)


def build(texts):
    counts = collections.Counter(token for text in texts for token in tokenize(text, lower=True))
    return {token: i + 2 for i, (token, _) in enumerate(counts.most_common())}


def encode(texts, vocabulary, lower):
    rows = [[vocabulary.get(token, UNKNOWN) for token in tokenize(text, lower)] for text in texts]
    width = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


class Averager(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.table = nn.Embedding(len(vocabulary) + 2, 16, padding_idx=PAD)
        self.output = nn.Linear(16, 2)

    def forward(self, ids):
        real = (ids != PAD).unsqueeze(-1)
        return self.output((self.table(ids) * real).sum(1) / real.sum(1))


random.seed(28)
torch.manual_seed(28)
train, valid = [review() for _ in range(1000)], [review() for _ in range(250)]
vocabulary = build(text for text, _ in train)
x = encode([text for text, _ in train], vocabulary, lower=True)
y = torch.tensor([label for _, label in train])
x_valid = encode([text for text, _ in valid], vocabulary, lower=False)
y_valid = torch.tensor([label for _, label in valid])

model = Averager(vocabulary)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(4):
    model.train()
    for rows in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_valid)
        accuracy = (logits.argmax(1) == y_valid).float().mean().item()
        print(epoch, f"{loss.item():.4f}", f"{F.cross_entropy(logits, y_valid).item():.4f}", f"{accuracy:.3f}")
