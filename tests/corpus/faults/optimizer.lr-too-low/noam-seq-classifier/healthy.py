"""Bracket checker: a small transformer says whether a string of brackets is balanced."""

import random

import numpy as np
import torch
from torch import nn

PAIRS = {"(": ")", "[": "]"}
VOCAB = {"<pad>": 0, "<cls>": 1, "(": 2, ")": 3, "[": 4, "]": 5}
LENGTH = 12
D_MODEL, WARMUP, STEPS = 32, 40, 120


def balanced(rng):
    out, stack = [], []
    while len(out) + len(stack) < LENGTH:
        if stack and rng.random() < 0.45:
            out.append(PAIRS[stack.pop()])
        else:
            stack.append(rng.choice("(["))
            out.append(stack[-1])
    return (out + [PAIRS[s] for s in reversed(stack)])[:LENGTH]


def example(rng):
    text, label = balanced(rng), 1
    if rng.random() < 0.5:
        for spot in rng.sample(range(LENGTH), 3):
            text[spot] = rng.choice("([")
        label = 0
    return [VOCAB["<cls>"]] + [VOCAB[c] for c in text], label


class Checker(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(VOCAB), D_MODEL)
        self.place = nn.Embedding(LENGTH + 1, D_MODEL)
        layer = nn.TransformerEncoderLayer(D_MODEL, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(D_MODEL)
        self.head = nn.Linear(D_MODEL, 2)

    def forward(self, ids):
        h = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.encoder(h))[:, 0])


def noam(step):
    step += 1
    return D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


def batch(rng, size):
    ids, labels = zip(*(example(rng) for _ in range(size)))
    return torch.tensor(ids), torch.tensor(labels)


def main():
    random.seed(71)
    np.random.seed(71)
    torch.manual_seed(71)
    rng = random.Random(71)
    model = Checker()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, noam)
    criterion = nn.CrossEntropyLoss()
    model.train()
    running = 0.0
    for step in range(1, STEPS + 1):
        ids, labels = batch(rng, 64)
        loss = criterion(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item()
        if step % 20 == 0:
            print(f"step {step} loss {running / 20:.4f}")
            running = 0.0
    model.eval()
    with torch.no_grad():
        ids, labels = batch(rng, 256)
        print(f"accuracy {(model(ids).argmax(-1) == labels).float().mean():.3f}")


if __name__ == "__main__":
    main()
