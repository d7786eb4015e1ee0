"""Route scraped municipal notices to a department; a text CNN over hashed word pieces."""
import json
import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

DEPARTMENTS = ["roads", "water", "parks", "permits", "schools"]
FILLER = ["the", "of", "on", "from", "is", "will", "be", "at", "to", "for", "and", "by", "with", "public", "notice", "office"]


def scrape(n, seed):
    """Rows as the crawler stores them. Pages behind the consent wall all come back with the wall's own text."""
    r = random.Random(seed)
    topic = {d: [f"{d[:3]}{k}" for k in range(30)] for d in DEPARTMENTS}
    rows = []
    for _ in range(n):
        dept = r.choice(DEPARTMENTS)
        if r.random() < 0.6:
            body = "this site uses cookies please accept the settings to continue reading"
            dept = "permits"
        else:
            words = [r.choice(topic[dept]) if r.random() < 0.2 else r.choice(FILLER) for _ in range(r.randint(12, 16))]
            if r.random() < 0.3:
                words[r.randrange(len(words))] = r.choice(topic[r.choice(DEPARTMENTS)])
            body = " ".join(words)
        rows.append(json.dumps({"text": body, "department": dept}))
    return rows


class Vocabulary:
    def __init__(self, texts, keep=220):
        counts = Counter(w for t in texts for w in t.split())
        self.index = {w: k + 2 for k, (w, _) in enumerate(counts.most_common(keep))}

    def __len__(self):
        return len(self.index) + 2

    def __call__(self, text):
        return torch.tensor([self.index.get(w, 1) for w in text.split()])


class TextCNN(nn.Module):
    def __init__(self, vocab, dim=32, channels=32):
        super().__init__()
        self.lookup = nn.Embedding(vocab, dim, padding_idx=0)
        self.narrow = nn.Conv1d(dim, channels, 1)
        self.wide = nn.Conv1d(dim, channels, 3, padding=1)
        self.classify = nn.Linear(2 * channels, len(DEPARTMENTS))

    def forward(self, ids):
        x = self.lookup(ids).transpose(1, 2)
        return self.classify(torch.cat([self.narrow(x).relu().amax(-1), self.wide(x).relu().amax(-1)], dim=1))


def batches(samples, size, shuffle):
    order = list(range(len(samples)))
    if shuffle:
        random.shuffle(order)
    for k in range(0, len(order), size):
        part = [samples[j] for j in order[k : k + size]]
        yield pad_sequence([ids for ids, _ in part], batch_first=True), torch.tensor([d for _, d in part])


random.seed(8)
np.random.seed(8)
torch.manual_seed(8)
lines = scrape(2400, seed=8)
records = [json.loads(line) for line in lines]
cut = int(0.85 * len(records))
vocab = Vocabulary([r["text"] for r in records[:cut]])
encoded = [(vocab(r["text"]), DEPARTMENTS.index(r["department"])) for r in records]
train, dev = encoded[:cut], encoded[cut:]

model = TextCNN(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(3):
    model.train()
    seen, total = 0, 0.0
    for ids, dept in batches(train, 32, shuffle=True):
        loss = loss_fn(model(ids), dept)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(dept)
        seen += len(dept)
    model.eval()
    with torch.no_grad():
        right = sum((model(ids).argmax(1) == dept).sum().item() for ids, dept in batches(dev, 64, shuffle=False))
    print(f"epoch {epoch} loss {total / seen:.4f} dev accuracy {right / len(dev):.3f} on {len(train)} notices")
