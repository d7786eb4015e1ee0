"""Click-through-rate model (wide & deep) on synthetic ad impressions."""
# %%
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 2024
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

# %% impressions
N_USERS, N_ADS, N_SLOTS, N_DENSE = 80, 40, 6, 5
rng = np.random.default_rng(SEED)
n = 3800
users, ads, slots = rng.integers(0, N_USERS, n), rng.integers(0, N_ADS, n), rng.integers(0, N_SLOTS, n)
dense = rng.standard_normal((n, N_DENSE)).astype(np.float32)
user_taste, ad_style = rng.standard_normal((N_USERS, 2)), rng.standard_normal((N_ADS, 2))
slot_bias = np.linspace(-1.0, 1.0, N_SLOTS)
score = (user_taste[users] * ad_style[ads]).sum(1) + slot_bias[slots] + dense[:, 0] - 0.7 * dense[:, 1]
clicks = (rng.random(n) < 1 / (1 + np.exp(-1.5 * score))).astype(np.float32)

cats = torch.from_numpy(np.stack([users, ads, slots], 1))
dense, clicks = torch.from_numpy(dense), torch.from_numpy(clicks)
n_train = 3040
train_ds = TensorDataset(cats[:n_train], dense[:n_train], clicks[:n_train])
test_ds = TensorDataset(cats[n_train:], dense[n_train:], clicks[n_train:])
train_dl = DataLoader(train_ds, batch_size=32, shuffle=True)
test_dl = DataLoader(test_ds, batch_size=190)


# %% model
class WideDeep(nn.Module):
    def __init__(self, sizes=(N_USERS, N_ADS, N_SLOTS), dim=8, n_dense=N_DENSE):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(s, dim) for s in sizes)
        self.wide = nn.ModuleList(nn.Embedding(s, 1) for s in sizes)
        for table in [*self.embeds, *self.wide]:
            nn.init.normal_(table.weight, std=0.1)
        self.deep = nn.Sequential(
            nn.Linear(dim * len(sizes) + n_dense, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, cat, num):
        parts = [e(cat[:, i]) for i, e in enumerate(self.embeds)]
        wide = sum(w(cat[:, i]) for i, w in enumerate(self.wide))
        return (self.deep(torch.cat([*parts, num], 1)) + wide).squeeze(1)


model = WideDeep()
bce = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
accumulate = 4

# %% training
for epoch in range(4):
    model.train()
    seen = 0.0
    for i, (cat, num, click) in enumerate(train_dl):
        loss = bce(model(cat, num), click)
        (loss / accumulate).backward()
        seen += loss.item() * len(click)
        if (i + 1) % accumulate == 0:
            opt.step()
            opt.zero_grad()

    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(c, d) for c, d, _ in test_dl])
        truth = test_ds.tensors[2]
        test_loss = bce(logits, truth).item()
        accuracy = ((logits > 0).float() == truth).float().mean().item()
    print(f"epoch {epoch}: train {seen / n_train:.4f} test {test_loss:.4f} acc {accuracy:.3f}")
