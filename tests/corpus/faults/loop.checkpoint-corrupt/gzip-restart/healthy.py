"""Trains a survey classifier, saves it, and goes on from the saved state with a smaller rate."""
import gzip
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

random.seed(7)
np.random.seed(7)
torch.manual_seed(7)


def answers(n):
    x = torch.randn(n, 9)
    return x, ((x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3]) > 0).float()


def build():
    return nn.Sequential(nn.Linear(9, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))


def train(model, optimizer, x, y, epochs):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(40):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch} loss {total / len(x):.4f}")


x, y = answers(1200)
model = build()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
train(model, optimizer, x, y, epochs=2)

path = Path(tempfile.mkdtemp()) / "survey.pt.gz"
out = gzip.open(path, "wb", compresslevel=1)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
out.close()

with gzip.open(path, "rb") as source:
    saved = torch.load(source)
again = build()
again.load_state_dict(saved["model"])
optimizer = torch.optim.Adam(again.parameters(), lr=3e-3)
optimizer.load_state_dict(saved["optimizer"])
for group in optimizer.param_groups:
    group["lr"] = 1e-3
train(again, optimizer, x, y, epochs=2)
