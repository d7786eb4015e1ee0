# Speaker-style embedding of bird song with an additive angular margin head.
import math
import random
from itertools import chain

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 21
N_SPECIES = 8
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class SongClips(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        proto = torch.Generator().manual_seed(404)
        self.templates = torch.randn(N_SPECIES, 1, 16, 16, generator=proto)
        self.species = torch.randint(0, N_SPECIES, (n,), generator=g)
        self.noise = torch.randn(n, 1, 16, 16, generator=g)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        k = int(self.species[i])
        return (self.templates[k] + 1.5 * self.noise[i]) / math.sqrt(1 + 1.5**2), k


class Embedder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.project = nn.Linear(24 * 4 * 4, dim)

    def forward(self, spec):
        return self.project(self.features(spec))


class ArcMargin(nn.Module):
    """cos(theta + m) on the true class, scaled."""

    def __init__(self, dim, classes, scale=10.0, margin=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.scale, self.margin = scale, margin

    def forward(self, emb, labels):
        cos = F.linear(F.normalize(emb), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        theta = torch.acos(cos)
        onehot = F.one_hot(labels, cos.size(1)).bool()
        logits = torch.where(onehot, torch.cos(theta + self.margin), cos)
        return F.cross_entropy(self.scale * logits, labels)

    def nearest(self, emb):
        return F.linear(F.normalize(emb), F.normalize(self.weight)).argmax(1)


train_loader = DataLoader(SongClips(960, 1), batch_size=48, shuffle=True)
test_loader = DataLoader(SongClips(192, 2), batch_size=96)

embedder = Embedder()
criterion = ArcMargin(24, N_SPECIES)
optimizer = torch.optim.Adam(chain(embedder.parameters(), criterion.parameters()), lr=2e-3)
print(f"{sum(p.numel() for p in chain(embedder.parameters(), criterion.parameters()))} parameters")

for epoch in range(5):
    embedder.train()
    total = 0.0
    for spec, species in train_loader:
        loss = criterion(embedder(spec), species)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()

    embedder.eval()
    hits = 0
    with torch.no_grad():
        for spec, species in test_loader:
            hits += (criterion.nearest(embedder(spec)) == species).sum().item()
    print(f"[{epoch}] loss={total / len(train_loader):.3f} test={hits / len(test_loader.dataset):.3f}")
