"""Text-message spam filter with an EmbeddingBag, trained by a tiny callback engine."""

import random
from collections import defaultdict

import numpy as np
import torch
from torch import nn


class Engine:
    def __init__(self, model, optimizer, loss_fn):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.handlers = defaultdict(list)
        self.iteration = 0

    def on(self, event):
        def register(fn):
            self.handlers[event].append(fn)
            return fn

        return register

    def fire(self, event, **info):
        for fn in self.handlers[event]:
            fn(self, **info)

    def run(self, batches, epochs):
        for epoch in range(epochs):
            random.shuffle(batches)
            for batch in batches:
                self.model.train()
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(batch["words"], batch["offsets"]), batch["spam"])
                loss.backward()
                self.fire("backward_done")
                self.iteration += 1
                self.fire("iteration_done", loss=loss.item())
            self.fire("epoch_done", epoch=epoch)


def messages(n):
    out = []
    for _ in range(n):
        spam = random.random() < 0.5
        words = [
            random.randint(0, 19) if spam and random.random() < 0.3 else random.randint(20, 149)
            for _ in range(random.randint(6, 20))
        ]
        out.append((words, float(spam)))
    return out


def to_batches(rows, size=40):
    batches = []
    for i in range(0, len(rows), size):
        part = rows[i : i + size]
        lengths = [len(w) for w, _ in part]
        batches.append(
            {
                "words": torch.tensor([w for ws, _ in part for w in ws]),
                "offsets": torch.tensor([0, *np.cumsum(lengths)[:-1]]),
                "spam": torch.tensor([s for _, s in part]),
            }
        )
    return batches


class SpamFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(150, 24, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, words, offsets):
        return self.mlp(self.bag(words, offsets)).squeeze(1)


random.seed(20)
np.random.seed(20)
torch.manual_seed(20)
net = SpamFilter()
engine = Engine(net, torch.optim.Adam(net.parameters(), lr=5e-3), nn.BCEWithLogitsLoss())
recent = []


@engine.on("backward_done")
def apply(eng):
    eng.optimizer.step()


@engine.on("iteration_done")
def remember(eng, loss):
    recent.append(loss)


@engine.on("epoch_done")
def report(eng, epoch):
    print(f"epoch {epoch} bce {np.mean(recent):.4f}")
    recent.clear()


engine.run(to_batches(messages(1000)), epochs=4)
