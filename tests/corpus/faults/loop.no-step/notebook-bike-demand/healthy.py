# %% [markdown]
# # Bike demand
# Hourly demand from calendar and weather. Embeddings for the categories, an MLP on top.

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(2024)
torch.manual_seed(2024)

# %%
n = 4000
hour = np.random.randint(0, 24, n)
weekday = np.random.randint(0, 7, n)
season = np.random.randint(0, 4, n)
temp = np.random.normal(0, 1, n)
wind = np.random.normal(0, 1, n)
rush = np.where(weekday < 5, np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 18) ** 2) / 6), np.exp(-((hour - 14) ** 2) / 20))
demand = 2.0 * rush + 0.5 * temp - 0.2 * wind + 0.3 * (season == 1) + 0.1 * np.random.normal(0, 1, n)
demand = (demand - demand.mean()) / demand.std()

cats = torch.tensor(np.stack([hour, weekday, season], 1))
nums = torch.tensor(np.stack([temp, wind], 1), dtype=torch.float32)
y = torch.tensor(demand, dtype=torch.float32).unsqueeze(1)

train_dl = DataLoader(TensorDataset(cats[:3200], nums[:3200], y[:3200]), batch_size=128, shuffle=True)
valid_dl = DataLoader(TensorDataset(cats[3200:], nums[3200:], y[3200:]), batch_size=400)


# %%
class DemandModel(nn.Module):
    def __init__(self, sizes=(24, 7, 4), emb=8, hidden=64):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(s, emb) for s in sizes])
        self.mlp = nn.Sequential(nn.Linear(emb * len(sizes) + 2, hidden), nn.ReLU(), nn.Dropout(0.05), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, c, x):
        e = [emb(c[:, i]) for i, emb in enumerate(self.embs)]
        return self.mlp(torch.cat(e + [x], dim=1))


model = DemandModel()
loss_fn = nn.HuberLoss()
optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)

# %%
history = {"train": [], "valid": []}
for epoch in range(4):
    model.train()
    tot = 0.0
    for c, x, t in train_dl:
        pred = model(c, x)
        loss = loss_fn(pred, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tot += loss.item()
    history["train"].append(tot / len(train_dl))

    model.eval()
    with torch.no_grad():
        se = sum(loss_fn(model(c, x), t).item() * len(t) for c, x, t in valid_dl)
    history["valid"].append(se / 800)
    print(f"epoch {epoch}  train {history['train'][-1]:.4f}  valid {history['valid'][-1]:.4f}")

# %%
best = int(np.argmin(history["valid"]))
print("best epoch", best, "valid", round(history["valid"][best], 4))
