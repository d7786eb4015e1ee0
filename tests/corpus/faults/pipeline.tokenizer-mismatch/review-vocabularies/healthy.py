"""LSTM sentiment model over product reviews, with a vocabulary cut at a minimum frequency."""

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

GOOD = ["great", "lovely", "sturdy", "quick", "bright", "comfy", "solid", "neat"]
BAD = ["broken", "awful", "slow", "flimsy", "dull", "noisy", "cheap", "sticky"]
NEUTRAL = ["the", "this", "lamp", "chair", "phone", "cable", "it", "was", "is", "and", "very", "after", "one", "week"]
NEUTRAL += ["month", "bought", "for", "my", "desk", "kitchen", "in", "came", "with"]


@dataclass
class Config:
    train_size: int = 1200
    val_size: int = 300
    batch: int = 40
    epochs: int = 4
    lr: float = 3e-3
    min_freq: int = 2
    seed: int = 31
    specials: list = field(default_factory=lambda: ["<pad>", "<unk>"])


def write_reviews(n, seed):
    rng = random.Random(seed)
    reviews = []
    for _ in range(n):
        label = rng.randrange(2)
        tone = GOOD if label else BAD
        length = rng.randint(7, 15)
        words = [rng.choice(tone) if rng.random() < 0.3 else rng.choice(NEUTRAL) for _ in range(length)]
        words[rng.randrange(length)] = rng.choice(tone)
        reviews.append((" ".join(words), label))
    return reviews


class Vocab:
    def __init__(self, texts, cfg):
        counts = Counter(w for t in texts for w in t.split())
        kept = [w for w, c in counts.most_common() if c >= cfg.min_freq]
        self.itos = cfg.specials + kept
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def __call__(self, text):
        return [self.stoi.get(w, 1) for w in text.split()]


class ReviewSet(torch.utils.data.Dataset):
    def __init__(self, reviews, vocab):
        self.samples = [(vocab(text), label) for text, label in reviews]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def pad_batch(samples):
    lengths = [len(ids) for ids, _ in samples]
    out = torch.zeros(max(lengths), len(samples), dtype=torch.long)
    for j, (ids, _) in enumerate(samples):
        out[: len(ids), j] = torch.tensor(ids)
    return out, torch.tensor(lengths), torch.tensor([label for _, label in samples], dtype=torch.float)


class Sentiment(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 32)
        self.score = nn.Linear(32, 1)

    def forward(self, ids, lengths):
        states, _ = self.lstm(self.embedding(ids))
        mask = (torch.arange(ids.size(0))[:, None] < lengths[None]).unsqueeze(-1)
        pooled = (states * mask).sum(0) / lengths[:, None]
        return self.score(pooled).squeeze(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed), np.random.seed(cfg.seed), torch.manual_seed(cfg.seed)
        train, val = write_reviews(cfg.train_size, 1), write_reviews(cfg.val_size, 2)
        train_vocab = Vocab([t for t, _ in train], cfg)
        val_vocab = train_vocab
        loader = torch.utils.data.DataLoader
        self.train_loader = loader(ReviewSet(train, train_vocab), cfg.batch, shuffle=True, collate_fn=pad_batch)
        self.val_loader = loader(ReviewSet(val, val_vocab), cfg.batch, collate_fn=pad_batch)
        self.model = Sentiment(len(train_vocab))
        self.optim = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss = nn.BCEWithLogitsLoss()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for ids, lengths, labels in self.train_loader:
                self.optim.zero_grad()
                loss = self.loss(self.model(ids, lengths), labels)
                loss.backward()
                self.optim.step()
                total += loss.item()
            print(f"epoch {epoch}: train loss {total / len(self.train_loader):.4f}, val accuracy {self.evaluate():.3f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = count = 0
        for ids, lengths, labels in self.val_loader:
            right += ((self.model(ids, lengths) > 0) == (labels > 0.5)).sum().item()
            count += len(labels)
        return right / count


if __name__ == "__main__":
    Trainer(Config()).fit()
