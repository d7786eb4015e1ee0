"""Forecast tomorrow's turnover direction of a basket of thinly traded stocks from daily bars.

Exported from a notebook: volume_direction.ipynb
"""
# %%
import random

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(3)
np.random.seed(3)
torch.manual_seed(3)

# %% daily bars
WINDOW = 16
rng = np.random.default_rng(3)


def bars(ticker, days=220):
    drift = np.zeros(days)
    for t in range(1, days):
        drift[t] = -0.7 * drift[t - 1] + rng.normal(0, 0.3)
    price = 20 * np.exp(np.cumsum(rng.normal(0, 0.01, days)))
    volume = np.round(40 * np.exp(drift))
    if ticker in (4, 9):  # trading was halted for a day
        volume[rng.integers(60, 150)] = 0
    return pd.DataFrame({"ticker": ticker, "day": np.arange(days), "close": price, "volume": volume})


frame = pd.concat([bars(t) for t in range(14)], ignore_index=True)

# %% features
grouped = frame.groupby("ticker")
frame["ret"] = grouped["close"].pct_change()
frame["vol_chg"] = grouped["volume"].pct_change().fillna(0.0)
frame["up"] = (grouped["volume"].shift(-1) > frame["volume"]).astype(float)
frame = frame[(frame["day"] > 0) & (frame["day"] < frame["day"].max())]

train_rows = frame["day"] < 160
for column in ("ret", "vol_chg"):
    values = frame.loc[train_rows & np.isfinite(frame[column]), column]
    frame[column] = (frame[column] - values.mean()) / values.std()


def windows(part):
    inputs, targets = [], []
    for _, one in part.groupby("ticker"):
        features = one[["ret", "vol_chg"]].to_numpy(dtype=np.float32)
        goal = one["up"].to_numpy(dtype=np.float32)
        for end in range(WINDOW, len(one) + 1, 2):
            inputs.append(features[end - WINDOW : end])
            targets.append(goal[end - 1])
    return TensorDataset(torch.from_numpy(np.stack(inputs)), torch.tensor(np.array(targets)))


train_set, test_set = windows(frame[train_rows]), windows(frame[~train_rows])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
test_loader = DataLoader(test_set, batch_size=128)
print(len(train_set), "training windows,", len(test_set), "test windows")


# %% model
class Direction(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(hidden, 1))

    def forward(self, x):
        _, last = self.gru(x)
        return self.head(last[-1]).squeeze(-1)


net = Direction()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
bce = nn.BCEWithLogitsLoss()

# %% training
for epoch in range(6):
    net.train()
    losses = []
    for x, y in train_loader:
        opt.zero_grad()
        loss = bce(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += ((net(x) > 0) == (y > 0.5)).sum().item()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}, test hit rate {hits / len(test_set):.3f}")
