"""Few-shot recognition of sparse keystroke patterns: episodes of five classes, prototypes, cosine similarity."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(13)
np.random.seed(13)
torch.manual_seed(13)

KEYS, CLASSES, WAYS, SHOTS, QUERIES = 40, 20, 5, 3, 6
rng = np.random.default_rng(13)
typical = (rng.random((CLASSES, KEYS)) < 0.2) * rng.gamma(2.0, 1.0, (CLASSES, KEYS))


def sessions(label, count):
    """Mostly the class's own keys; now and then somebody types nothing at all."""
    pressed = rng.poisson(typical[label] * rng.uniform(0.3, 1.5, (count, 1)))
    pressed[rng.random(count) < 0.01] = 0
    return np.log1p(pressed)


def episode():
    ways = rng.choice(CLASSES, WAYS, replace=False)
    support = np.stack([sessions(w, SHOTS) for w in ways])
    query = np.concatenate([sessions(w, QUERIES) for w in ways])
    target = np.repeat(np.arange(WAYS), QUERIES)
    return torch.tensor(support, dtype=torch.float32), torch.tensor(query, dtype=torch.float32), torch.tensor(target)


class Embedder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(KEYS, width, bias=False), nn.ReLU(), nn.Linear(width, width, bias=False), nn.ReLU()
        )
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, support, query):
        prototypes = self.layers(support).mean(dim=1)
        q = self.layers(query)
        q = q / q.norm(dim=-1, keepdim=True)
        prototypes = F.normalize(prototypes, dim=-1)
        return self.scale * q @ prototypes.T


model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scores = []
for step in range(120):
    support, query, target = episode()
    logits = model(support, query)
    loss = F.cross_entropy(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scores.append((logits.argmax(-1) == target).float().mean().item())
    if step % 20 == 19:
        print(f"episode {step + 1}: loss {loss.item():.3f} accuracy {np.mean(scores[-20:]):.3f}")
