"""Match product photos to their titles (CLIP-style, two towers, symmetric cross entropy)."""
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Catalogue:
    def __init__(self, n=512, n_attrs=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.attrs = torch.rand(n, n_attrs, generator=g).lt(0.3)
        patterns = torch.randn(n_attrs, 3, 12, 12, generator=g)
        photo = torch.einsum("na,achw->nchw", self.attrs.float(), patterns)
        photo = photo + 0.6 * torch.randn(photo.shape, generator=g)
        self.photos = (photo - photo.mean()) / photo.std()
        # titles: one word per attribute, shuffled, padded with 0
        self.titles = torch.zeros(n, 8, dtype=torch.long)
        for i, row in enumerate(self.attrs):
            words = (row.nonzero().flatten() + 1).tolist()[:8]
            random.shuffle(words)
            if not words:
                words = [n_attrs + 1]
            self.titles[i, : len(words)] = torch.tensor(words)

    def batches(self, batch_size):
        perm = torch.randperm(len(self.photos))
        for start in range(0, len(perm) - batch_size + 1, batch_size):
            idx = perm[start : start + batch_size]
            yield self.photos[idx], self.titles[idx]


class PhotoTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Flatten(),
        )
        self.proj = nn.Linear(32 * 3 * 3, dim)

    def forward(self, photos):
        feats = self.features(photos).data
        return F.normalize(self.proj(feats), dim=-1)


class TitleTower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, 48, mode="mean", padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, titles):
        return F.normalize(self.mlp(self.words(titles)), dim=-1)


class Matcher(nn.Module):
    def __init__(self, vocab=14, dim=32):
        super().__init__()
        self.photo = PhotoTower(dim)
        self.title = TitleTower(vocab, dim)
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.1)))

    def forward(self, photos, titles):
        p = self.photo(photos)
        t = self.title(titles)
        logits = self.log_scale.exp().clamp(max=50) * p @ t.t()
        target = torch.arange(len(logits))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


seed_everything(2024)
data = Catalogue()
model = Matcher()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)

for epoch in range(8):
    losses = []
    for photos, titles in data.batches(64):
        loss = model(photos, titles)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("epoch", epoch, "loss", round(sum(losses) / len(losses), 4), "scale", round(model.log_scale.exp().item(), 2))
