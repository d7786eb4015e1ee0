"""Do two listings describe the same flat? A siamese encoder trained with nn.CosineEmbeddingLoss."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 20


def pairs(n, seed):
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(3).normal(size=(8, FEATURES)) / 8**0.5
    flat = rng.normal(size=(n, 8))
    other = rng.normal(size=(n, 8))
    same = rng.random(n) < 0.5
    left = flat @ mix + 0.3 * rng.normal(size=(n, FEATURES))
    right = np.where(same[:, None], flat, other) @ mix + 0.3 * rng.normal(size=(n, FEATURES))
    label = np.where(same, 1.0, 0.0)
    return TensorDataset(
        torch.tensor(left, dtype=torch.float32), torch.tensor(right, dtype=torch.float32), torch.tensor(label, dtype=torch.float32)
    )


class Encoder(nn.Module):
    def __init__(self, width=64, out=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, out))

    def forward(self, x):
        return self.net(x)


class SiameseTrainer:
    def __init__(self, seed=7):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.encoder = Encoder()
        self.criterion = nn.CosineEmbeddingLoss(margin=0.2)
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=2e-3)
        self.train_loader = DataLoader(pairs(1600, 1), batch_size=64, shuffle=True)
        self.valid_loader = DataLoader(pairs(300, 2), batch_size=300)

    def train_epoch(self):
        self.encoder.train()
        losses = []
        for left, right, label in self.train_loader:
            loss = self.criterion(self.encoder(left), self.encoder(right), label)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def separation(self):
        self.encoder.eval()
        left, right, label = next(iter(self.valid_loader))
        similarity = nn.functional.cosine_similarity(self.encoder(left), self.encoder(right))
        return similarity[label > 0].mean().item(), similarity[label <= 0].mean().item()


if __name__ == "__main__":
    trainer = SiameseTrainer()
    for epoch in range(4):
        loss = trainer.train_epoch()
        same, different = trainer.separation()
        print(f"epoch {epoch}: loss {loss:.4f}  similarity same {same:.3f}  different {different:.3f}")
