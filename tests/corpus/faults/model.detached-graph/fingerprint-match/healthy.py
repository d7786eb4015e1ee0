"""Fingerprint identification: convolutional embedding with an additive angular margin head."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Embedder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.GroupNorm(4, 16),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.GroupNorm(4, 32),
            nn.ReLU(inplace=True),
        )
        self.project = nn.Linear(32 * 5 * 5, dim)

    def forward(self, image):
        return self.project(self.features(image).flatten(1))


class MarginHead(nn.Module):
    def __init__(self, dim, people, scale=12.0, margin=0.15):
        super().__init__()
        self.centres = nn.Parameter(torch.empty(people, dim))
        nn.init.xavier_uniform_(self.centres)
        self.scale, self.margin = scale, margin

    def forward(self, unit, person=None):
        cosine = unit @ F.normalize(self.centres).t()
        if person is not None:
            sine = (1.0 - cosine**2).clamp_min(1e-6).sqrt()
            shifted = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
            cosine = torch.where(F.one_hot(person, cosine.size(1)).bool(), shifted, cosine)
        return self.scale * cosine


class Matcher(nn.Module):
    def __init__(self, people, dim=32):
        super().__init__()
        self.embedder = Embedder(dim)
        self.head = MarginHead(dim, people)

    def embed(self, image):
        return F.normalize(self.embedder(image), dim=-1)

    def forward(self, image, person=None):
        return self.head(self.embed(image), person)


def ridge_prints(people, per_person, rng):
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 20), np.linspace(-1, 1, 20)))
    images, owners = [], []
    for who in range(people):
        freq, angle, bend = rng.uniform(4, 12), rng.uniform(0, np.pi), rng.uniform(-3, 3)
        for _ in range(per_person):
            a = angle + rng.normal(0, 0.06)
            u = grid[0] * np.cos(a) + grid[1] * np.sin(a)
            v = -grid[0] * np.sin(a) + grid[1] * np.cos(a)
            wave = np.sin(freq * u + bend * v**2 + rng.normal(0, 0.3))
            images.append(wave + rng.normal(0, 0.3, wave.shape))
            owners.append(who)
    x = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
    return (x - x.mean()) / x.std(), torch.tensor(owners)


def main(people=20, epochs=5, seed=8):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    x, y = ridge_prints(people, 50, np.random.default_rng(seed))
    order = torch.randperm(len(x))
    train_idx, test_idx = order[:800], order[800:]
    loader = DataLoader(TensorDataset(x[train_idx], y[train_idx]), batch_size=40, shuffle=True)
    model = Matcher(people)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))

    for epoch in range(epochs):
        model.train()
        losses = []
        for image, person in loader:
            loss = F.cross_entropy(model(image, person), person)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            gallery, probes = model.embed(x[train_idx]), model.embed(x[test_idx])
            nearest = (probes @ gallery.t()).argmax(1)
            rank1 = (y[train_idx][nearest] == y[test_idx]).float().mean()
        print(f"epoch {epoch + 1}/{epochs} loss {np.mean(losses):.4f} rank-1 {rank1:.3f}")


if __name__ == "__main__":
    main()
