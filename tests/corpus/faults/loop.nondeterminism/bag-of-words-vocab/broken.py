"""Sentiment of generated reviews: vocabulary, averaged word vectors, small MLP. Deterministic by design."""
from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor, nn

GOOD = "great lovely superb charming crisp warm honest bright clever smooth".split()
BAD = "awful dull clumsy bland noisy cold broken slow greasy sloppy".split()
NEUTRAL = "the a this film meal room phone staff plot screen menu was seems looked really quite rather and but with".split()


@dataclass
class Settings:
    seed: int = 3
    embedding_dim: int = 24
    hidden: int = 32
    batch_size: int = 25
    epochs: int = 4
    learning_rate: float = 5e-3


def write_review(rng: random.Random) -> tuple[list[str], int]:
    label = rng.randrange(2)
    own, other = (GOOD, BAD) if label else (BAD, GOOD)
    words = [rng.choice(NEUTRAL) for _ in range(rng.randint(8, 14))]
    words += [rng.choice(own) for _ in range(3)] + [rng.choice(other)]
    rng.shuffle(words)
    return words, label


class Vocabulary:
    def __init__(self, texts: list[list[str]]) -> None:
        words = {word for text in texts for word in text}
        self.index = {word: i for i, word in enumerate(words, start=1)}

    def __len__(self) -> int:
        return len(self.index) + 1

    def encode(self, text: list[str]) -> list[int]:
        return [self.index.get(word, 0) for word in text]


class ReviewClassifier(nn.Module):
    def __init__(self, vocab_size: int, cfg: Settings) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab_size, cfg.embedding_dim, mode="mean")
        self.net = nn.Sequential(nn.Linear(cfg.embedding_dim, cfg.hidden), nn.Tanh(), nn.Linear(cfg.hidden, 2))

    def forward(self, flat: Tensor, offsets: Tensor) -> Tensor:
        return self.net(self.bag(flat, offsets))


def pack(examples: list[tuple[list[int], int]]) -> tuple[Tensor, Tensor, Tensor]:
    flat = torch.tensor([i for ids, _ in examples for i in ids])
    lengths = torch.tensor([len(ids) for ids, _ in examples])
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
    return flat, offsets, torch.tensor([label for _, label in examples])


def run(cfg: Settings) -> None:
    torch.manual_seed(cfg.seed)
    rng = random.Random(cfg.seed)
    reviews = [write_review(rng) for _ in range(700)]
    train_reviews, test_reviews = reviews[:550], reviews[550:]
    vocab = Vocabulary([text for text, _ in train_reviews])
    train = [(vocab.encode(text), label) for text, label in train_reviews]
    test = [(vocab.encode(text), label) for text, label in test_reviews]

    model = ReviewClassifier(len(vocab), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.learning_rate)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        model.train()
        rng.shuffle(train)
        losses = []
        for start in range(0, len(train), cfg.batch_size):
            flat, offsets, labels = pack(train[start : start + cfg.batch_size])
            loss = criterion(model(flat, offsets), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            flat, offsets, labels = pack(test)
            accuracy = (model(flat, offsets).argmax(1) == labels).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.7f}, test accuracy {accuracy:.4f}")

    total = sum(p.double().sum().item() for p in model.parameters())
    print(f"parameter sum with seed {cfg.seed}: {total:.12f}")


if __name__ == "__main__":
    run(Settings())
