"""Bag-of-embeddings sentiment classifier with padding_idx and a mean over real tokens only; length-bucketed, shuffled batches."""
import random

import torch
import torch.nn as nn

PAD, UNK = "<pad>", "<unk>"
GOOD = "great lovely superb warm bright honest funny gentle crisp clever".split()
BAD = "dull broken noisy rude bland slow sour clumsy stale gloomy".split()
NEUTRAL = "the a film plot room service actor scene meal seat story screen was with and but very quite rather then".split()


def write_review(rng):
    label = rng.randrange(2)
    strong, weak = (GOOD, BAD) if label else (BAD, GOOD)
    words = rng.choices(NEUTRAL, k=rng.randint(6, 14)) + rng.choices(strong, k=rng.randint(3, 4)) + rng.choices(weak, k=rng.randint(0, 2))
    rng.shuffle(words)
    return words, label


class Vocabulary:
    def __init__(self, texts):
        self.itos = [PAD, UNK] + sorted({w for t in texts for w in t})
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __call__(self, words):
        return [self.stoi.get(w, 1) for w in words]


class MeanClassifier(nn.Module):
    def __init__(self, vocab_size, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, ids):
        present = (ids != 0).unsqueeze(-1)
        mean = (self.embedding(ids) * present).sum(1) / present.sum(1)
        return self.mlp(mean)


def bucketed_batches(data, size, rng):
    """Shuffle, sort inside windows of eight batches, then shuffle the batches."""
    order = rng.sample(data, len(data))
    batches = []
    for w in range(0, len(order), size * 8):
        window = sorted(order[w : w + size * 8], key=lambda pair: len(pair[0]))
        batches += [window[i : i + size] for i in range(0, len(window), size)]
    rng.shuffle(batches)
    return batches


def tensors(batch):
    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in batch])
    return ids, torch.tensor([label for _, label in batch])


rng = random.Random(8)
torch.manual_seed(8)
reviews = [write_review(rng) for _ in range(1500)]
train_texts, test_texts = reviews[:1200], reviews[1200:]
vocab = Vocabulary([t for t, _ in train_texts])
train = [(vocab(t), y) for t, y in train_texts]
test = [(vocab(t), y) for t, y in test_texts]

model = MeanClassifier(len(vocab.itos))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    loss_sum = 0.0
    for batch in bucketed_batches(train, 50, rng):
        ids, labels = tensors(batch)
        loss = nn.functional.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(labels)
    model.eval()
    with torch.no_grad():
        ids, labels = tensors(test)
        acc = (model(ids).argmax(1) == labels).float().mean().item()
    print(f"epoch {epoch} loss {loss_sum / len(train):.3f} test accuracy {acc:.3f}")
