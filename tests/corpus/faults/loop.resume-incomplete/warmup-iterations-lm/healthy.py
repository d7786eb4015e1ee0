"""Bracket-language model, trained in two legs as on a queue with a wall-time limit: leg two picks up leg one's file."""

import math
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn

VOCAB, CONTEXT = 12, 24
WARMUP, TOTAL, PEAK, FLOOR = 12, 90, 6e-3, 3e-4


def brackets(rng, length):
    """Nested pairs: an opener k in 0..5 is always closed by 6 + k."""
    out, stack = [], []
    while len(out) < length:
        if stack and (len(stack) > 4 or rng.random() < 0.5):
            out.append(6 + stack.pop())
        else:
            stack.append(rng.randrange(6))
            out.append(stack[-1])
    return out


def lr_at(iteration):
    if iteration < WARMUP:
        return PEAK * (iteration + 1) / WARMUP
    done = (iteration - WARMUP) / (TOTAL - WARMUP)
    return FLOOR + 0.5 * (PEAK - FLOOR) * (1 + math.cos(math.pi * done))


class BracketModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, 64, batch_first=True)
        self.out = nn.Linear(64, VOCAB)

    def forward(self, ids):
        return self.out(self.rnn(self.tok(ids))[0])


def save(path, model, optimizer, iteration):
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
            "iteration": iteration,
        },
        path,
    )


def leg(path, corpus, stop):
    model = BracketModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=PEAK)
    iteration = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        iteration = state["iteration"]
    for _ in range(stop):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(iteration)
        starts = torch.randint(len(corpus) - CONTEXT - 1, (32,))
        ids = corpus[starts[:, None] + torch.arange(CONTEXT + 1)]
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 9 == 0:
            print(f"iteration {iteration:3d} lr {lr_at(iteration):.5f} loss {loss.item():.3f}")
        iteration += 1
    save(path, model, optimizer, iteration)


def main():
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    corpus = torch.tensor(brackets(random.Random(2), 6000))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "leg.pt")
        leg(path, corpus, 45)
        print("-- wall time reached, next leg")
        leg(path, corpus, 45)


if __name__ == "__main__":
    main()
