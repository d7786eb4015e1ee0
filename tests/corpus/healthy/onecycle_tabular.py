"""Tabular model with categorical embeddings, OneCycleLR stepped per batch, momentum cycling, clipping on every step."""
import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CARDINALITIES = {"shop": 12, "weekday": 7, "product": 25}


class SalesDataset(Dataset):
    def __init__(self, n, seed):
        effects = torch.Generator().manual_seed(1000)
        tables = {k: torch.randn(c, generator=effects) for k, c in CARDINALITIES.items()}
        g = torch.Generator().manual_seed(seed)
        self.cats = torch.stack([torch.randint(0, c, (n,), generator=g) for c in CARDINALITIES.values()], dim=1)
        self.nums = torch.randn(n, 4, generator=g)
        parts = [tables[k][self.cats[:, i]] for i, k in enumerate(CARDINALITIES)]
        y = sum(parts) + self.nums[:, 0] * parts[0] - 0.5 * self.nums[:, 1] + 0.2 * torch.randn(n, generator=g)
        self.y = y / 2

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.cats[i], self.nums[i], self.y[i]


class TabularNet(nn.Module):
    def __init__(self, dim=8, width=64):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(c, dim) for c in CARDINALITIES.values())
        self.bn = nn.BatchNorm1d(4)
        self.fc1 = nn.Linear(dim * len(CARDINALITIES) + 4, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, cats, nums):
        pieces = [emb(cats[:, i]) for i, emb in enumerate(self.embeddings)]
        h = torch.cat([*pieces, self.bn(nums)], dim=1)
        h = F.relu(self.fc2(F.relu(self.fc1(h))))
        return self.fc3(h).squeeze(1)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=5)
    cli.add_argument("--max-lr", type=float, default=1e-2)
    cfg = cli.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    train_loader = DataLoader(SalesDataset(1920, 1), batch_size=80, shuffle=True)
    val_loader = DataLoader(SalesDataset(400, 2), batch_size=200)
    model = TabularNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=cfg.max_lr, epochs=cfg.epochs, steps_per_epoch=len(train_loader), pct_start=0.3
    )
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for cats, nums, y in train_loader:
            loss = F.mse_loss(model(cats, nums), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            running += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            val = sum(F.mse_loss(model(c, n), y, reduction="sum").item() for c, n, y in val_loader) / 400
        print(f"epoch {epoch} train {running / 1920:.4f} val {val:.4f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
