"""Tell good reviews from bad ones. The accuracy stays behind what such an easy task allows. Two
lines are wrong.

python examples/reviews.py
"""

import random

import torch
from torch import nn
from torch.nn import functional as F

GOOD = ["lovely", "warm", "clear", "honest", "bright", "gentle", "quick", "rich"]
BAD = ["dull", "noisy", "cold", "sloppy", "grey", "clumsy", "slow", "thin"]
PLAIN = ["the", "film", "plot", "sound", "scene", "story", "cast", "light", "end", "part"]
WORDS = {word: i for i, word in enumerate([*GOOD, *BAD, *PLAIN], start=1)}
LENGTH = 12


def review(rng):
    """Most of its telling words agree with its verdict."""
    good = rng.random() < 0.5
    told = [rng.choice(GOOD if (rng.random() < 0.8) == good else BAD) for _ in range(4)]
    words = told + rng.choices(PLAIN, k=LENGTH - len(told))
    rng.shuffle(words)
    return [WORDS[w] for w in words], int(good)


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2))
        self.out = nn.Linear(width, 2)

    def forward(self, words):
        read = self.mix(self.embed(words).mean(1))
        return F.softmax(self.out(read), dim=-1)


class Fitting:
    def __init__(self, rows, rate=5e-3):
        self.words = torch.tensor([words for words, _ in rows])
        self.good = torch.tensor([good for _, good in rows])
        self.net = Reader()
        self.algo = torch.optim.Adam(self.net.parameters(), lr=rate)

    def accuracy(self, words, good):
        self.net.eval()
        with torch.no_grad():
            return (self.net(words).argmax(-1) == good).float().mean().item()

    def epoch(self, size=32):
        for part in torch.randperm(len(self.words)).split(size):
            self.algo.zero_grad()
            error = F.cross_entropy(self.net(self.words[part]), self.good[part])
            error.backward()
            self.algo.step()
        return error.item()


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    fitting = Fitting([review(rng) for _ in range(480)])
    unseen = [review(rng) for _ in range(160)]
    words, good = torch.tensor([w for w, _ in unseen]), torch.tensor([g for _, g in unseen])
    for epoch in range(8):
        error = fitting.epoch()
        print(f"epoch {epoch}: loss {error:.3f}, unseen {fitting.accuracy(words, good):.0%} right")


if __name__ == "__main__":
    main()
