"""Click-through model: wide linear part plus a small deep part over hashed ids and traffic counters."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

SEED = 2024
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

N_ROWS = 6000
N_ADS, N_SITES = 60, 24


def simulate_log():
    rng = np.random.default_rng(SEED)
    ad = rng.integers(0, N_ADS, N_ROWS)
    site = rng.integers(0, N_SITES, N_ROWS)
    # impressions, past clicks, seconds on page: heavy-tailed counters
    impressions = rng.negative_binomial(2, 0.02, N_ROWS)
    past_clicks = rng.binomial(impressions, 0.12)
    dwell = rng.gamma(1.5, 30.0, N_ROWS).astype(int)
    counters = np.stack([impressions, past_clicks, dwell], axis=1)
    ad_effect = rng.normal(0, 1.0, N_ADS)
    site_effect = rng.normal(0, 0.7, N_SITES)
    score = ad_effect[ad] + site_effect[site] + 0.8 * (np.log1p(past_clicks) - 2.0) + 0.5 * (np.log1p(dwell) - 3.3)
    clicked = (rng.random(N_ROWS) < 1 / (1 + np.exp(-1.5 * score))).astype(np.float32)
    return ad, site, counters, clicked


class ClickLog(Dataset):
    def __init__(self):
        ad, site, counters, clicked = simulate_log()
        dense = np.log(counters.astype(np.float32))
        dense = dense / np.array([4.0, 2.5, 3.5], dtype=np.float32) - 1.0
        self.ad = torch.as_tensor(ad)
        self.site = torch.as_tensor(site)
        self.dense = torch.as_tensor(dense)
        self.clicked = torch.as_tensor(clicked)

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, i):
        return {"ad": self.ad[i], "site": self.site[i], "dense": self.dense[i]}, self.clicked[i]


class WideAndDeep(nn.Module):
    def __init__(self, dim=8, hidden=48):
        super().__init__()
        self.ad_bias = nn.Embedding(N_ADS, 1)
        self.site_bias = nn.Embedding(N_SITES, 1)
        self.ad_vec = nn.Embedding(N_ADS, dim)
        self.site_vec = nn.Embedding(N_SITES, dim)
        self.deep = nn.Sequential(
            nn.Linear(2 * dim + 3, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        for table in (self.ad_bias, self.site_bias, self.ad_vec, self.site_vec):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, batch):
        wide = self.ad_bias(batch["ad"]) + self.site_bias(batch["site"])
        deep_in = torch.cat([self.ad_vec(batch["ad"]), self.site_vec(batch["site"]), batch["dense"]], dim=-1)
        return (wide + self.deep(deep_in)).squeeze(-1)


data = ClickLog()
train_set, val_set = random_split(data, [5000, 1000], generator=torch.Generator().manual_seed(SEED))
train_loader = DataLoader(train_set, batch_size=100, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)

model = WideAndDeep()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(3):
    model.train()
    running = 0.0
    for features, clicked in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(features), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(clicked)
    model.eval()
    val_loss, hits = 0.0, 0
    with torch.no_grad():
        for features, clicked in val_loader:
            logits = model(features)
            val_loss += F.binary_cross_entropy_with_logits(logits, clicked, reduction="sum").item()
            hits += ((logits > 0).float() == clicked).sum().item()
    print(f"epoch {epoch}: train {running / len(train_set):.4f}  val {val_loss / len(val_set):.4f}  acc {hits / len(val_set):.3f}")
