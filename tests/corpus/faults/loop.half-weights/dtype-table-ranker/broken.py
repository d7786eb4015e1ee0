"""Pairwise ranker over item features; the precision comes from a table of options."""
import random

import numpy as np
import torch
from torch import nn

DTYPES = {"full": torch.float32, "half": torch.float16, "brain": torch.bfloat16}
OPTIONS = {"precision": "half", "lr": 0.003, "momentum": 0.0, "steps": 120, "pairs": 96, "seed": 51}


class Ranker(nn.Module):
    def __init__(self, features, width=1024):
        super().__init__()
        self.inner = nn.Linear(features, width)
        self.score = nn.Linear(width, 1)

    def forward(self, items):
        return self.score(torch.relu(self.inner(items))).squeeze(-1)


def sample_pairs(n, taste, dtype):
    left, right = torch.randn(n, 12), torch.randn(n, 12)
    gap = (left - right) @ taste + 0.3 * torch.randn(n)
    return left.to(dtype), right.to(dtype), (gap > 0).to(dtype)


def main():
    random.seed(OPTIONS["seed"])
    np.random.seed(OPTIONS["seed"])
    torch.manual_seed(OPTIONS["seed"])
    dtype = DTYPES[OPTIONS["precision"]]
    taste = torch.randn(12)
    ranker = Ranker(12).to(dtype)
    optimizer = torch.optim.SGD(ranker.parameters(), lr=OPTIONS["lr"], momentum=OPTIONS["momentum"])
    bce = nn.BCEWithLogitsLoss()
    window = []
    for step in range(OPTIONS["steps"]):
        left, right, wins = sample_pairs(OPTIONS["pairs"], taste, dtype)
        loss = bce(ranker(left) - ranker(right), wins)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(loss.item())
        if step % 24 == 23:
            print(f"step {step + 1} loss {sum(window[-24:]) / 24:.4f}")


main()
