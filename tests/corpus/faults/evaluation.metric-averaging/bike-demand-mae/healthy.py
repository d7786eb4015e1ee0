"""Hourly bike demand from weather and calendar features; reports the validation MAE in bikes."""
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(31)
torch.manual_seed(31)


def make_frame(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "hour": rng.integers(0, 24, n), "temp": rng.normal(14, 8, n), "wind": rng.gamma(2, 4, n), "rain": rng.random(n) < 0.2,
        "holiday": rng.random(n) < 0.1,
    })
    rush = np.exp(-((df.hour - 8) ** 2) / 6) + np.exp(-((df.hour - 17) ** 2) / 8)
    df["bikes"] = 40 + 160 * rush * (1 - 0.6 * df.holiday) + 3 * df.temp - 1.5 * df.wind - 30 * df.rain + rng.normal(0, 12, n)
    return df


def features(df):
    angle = 2 * np.pi * df.hour / 24
    cols = [np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle), df.temp, df.wind, df.rain, df.holiday]
    return np.stack([np.asarray(c, dtype=np.float32) for c in cols], axis=1)


class BikeDataset(Dataset):
    def __init__(self, x, y):
        self.x, self.y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


df = make_frame(2400, seed=5)
train_df, val_df = df.iloc[:1800], df.iloc[1800:2330]
x_train, x_val = features(train_df), features(val_df)
mu, sd = x_train.mean(0), x_train.std(0)
y_mu, y_sd = train_df.bikes.mean(), train_df.bikes.std()
train_loader = DataLoader(BikeDataset((x_train - mu) / sd, (train_df.bikes.values - y_mu) / y_sd), batch_size=64, shuffle=True)
val_loader = DataLoader(BikeDataset((x_val - mu) / sd, (val_df.bikes.values - y_mu) / y_sd), batch_size=128)

net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
loss_fn = nn.HuberLoss()

for epoch in range(5):
    net.train()
    train_losses = []
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = loss_fn(net(xb).squeeze(-1), yb)
        loss.backward()
        opt.step()
        train_losses.append(loss.item())

    net.eval()
    maes = []
    with torch.no_grad():
        for xb, yb in val_loader:
            err = (net(xb).squeeze(-1) - yb).abs() * y_sd
            maes.append(err)
    print(f"epoch {epoch} train {np.mean(train_losses):.4f} val MAE {torch.cat(maes).mean().item():.2f} bikes")
