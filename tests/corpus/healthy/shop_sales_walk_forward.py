"""Daily sales per shop from lags and calendar; three walk-forward folds, a fresh model and scaler for each."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(4)
np.random.seed(4)
torch.manual_seed(4)

SHOPS, DAYS, LAGS = 12, 210, 7


def simulate_sales(rng):
    level = rng.uniform(40, 120, SHOPS)[:, None]
    week = 1 + 0.35 * np.sin(2 * np.pi * (np.arange(DAYS)[None, :] + rng.integers(0, 7, (SHOPS, 1))) / 7)
    promo = (rng.random((SHOPS, DAYS)) < 0.15).astype(float)
    trend = 1 + 0.0005 * np.arange(DAYS)[None, :]
    sales = level * week * trend * (1 + 0.3 * promo) * np.exp(rng.normal(0, 0.06, (SHOPS, DAYS)))
    return sales, promo


def make_rows(sales, promo):
    shop, day, lagged, extra, target = [], [], [], [], []
    for s in range(SHOPS):
        for d in range(LAGS, DAYS):
            shop.append(s)
            day.append(d)
            lagged.append(np.log(sales[s, d - LAGS : d]))
            extra.append([promo[s, d], *np.eye(7)[d % 7]])
            target.append(np.log(sales[s, d]))
    return np.array(shop), np.array(day), np.array(lagged), np.array(extra), np.array(target)


class SalesNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.shop = nn.Embedding(SHOPS, 4)
        self.mlp = nn.Sequential(nn.Linear(4 + LAGS + 8, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, shop, numeric):
        return self.mlp(torch.cat([self.shop(shop), numeric], dim=-1)).squeeze(-1)


def as_dataset(rows, keep, mean, std):
    shop, day, lagged, extra, target = (part[keep] for part in rows)
    numeric = np.concatenate([(lagged - mean) / std, extra], axis=1)
    return TensorDataset(
        torch.from_numpy(shop),
        torch.from_numpy(day),
        torch.from_numpy(numeric).float(),
        torch.from_numpy((target - mean) / std).float(),
    )


rows = make_rows(*simulate_sales(np.random.default_rng(4)))
for fold, (start, stop) in enumerate([(120, 150), (150, 180), (180, 210)]):
    day, target = rows[1], rows[4]
    mean, std = target[day < start].mean(), target[day < start].std()
    train_set = as_dataset(rows, day < start, mean, std)
    valid_set = as_dataset(rows, (day >= start) & (day < stop), mean, std)
    train_loader = DataLoader(train_set, batch_size=96, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=120)

    model = SalesNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(4):
        model.train()
        for shop, _, numeric, wanted in train_loader:
            loss = nn.functional.smooth_l1_loss(model(shop, numeric), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            error = sum((model(shop, numeric) - wanted).abs().sum().item() for shop, _, numeric, wanted in valid_loader)
        print(f"fold {fold} epoch {epoch} last train loss {loss.item():.4f} valid mae {error / len(valid_set):.4f}")
