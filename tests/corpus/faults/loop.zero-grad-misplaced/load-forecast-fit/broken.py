"""Day-ahead electricity load: sklearn-like estimator around an LSTM."""
import numpy as np
import torch
from torch import nn


def hourly_load(days, seed):
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    daily = np.sin(2 * np.pi * hours / 24 - 1.2)
    weekly = 0.4 * ((hours // 24) % 7 < 5)
    noise = np.zeros(len(hours))
    for i in range(1, len(hours)):
        noise[i] = 0.7 * noise[i - 1] + 0.1 * rng.standard_normal()
    return (50 + 12 * daily + 8 * weekly + 6 * noise).astype(np.float32)


def windows(series, history, horizon):
    starts = range(0, len(series) - history - horizon, 3)
    x = np.stack([series[s : s + history] for s in starts])
    y = np.stack([series[s + history : s + history + horizon] for s in starts])
    return torch.from_numpy(x).unsqueeze(-1), torch.from_numpy(y)


class _Net(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=1, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.head(self.norm(h[-1]))


class LoadForecaster:
    def __init__(self, history=36, horizon=12, hidden=40, lr=5e-3, epochs=6, batch_size=32, random_state=0):
        self.history, self.horizon, self.hidden = history, horizon, hidden
        self.lr, self.epochs, self.batch_size = lr, epochs, batch_size
        self.random_state = random_state

    def fit(self, series, valid):
        torch.manual_seed(self.random_state)
        self.mean_, self.std_ = float(series.mean()), float(series.std())
        x, y = windows((series - self.mean_) / self.std_, self.history, self.horizon)
        xv, yv = windows((valid - self.mean_) / self.std_, self.history, self.horizon)
        self.net_ = _Net(self.hidden, self.horizon)
        optimizer = torch.optim.Adam(self.net_.parameters(), lr=self.lr)
        criterion = nn.SmoothL1Loss()
        self.history_ = []
        for epoch in range(self.epochs):
            self.net_.train()
            losses = []
            for idx in torch.randperm(len(x)).split(self.batch_size):
                output = self.net_(x[idx])
                loss = criterion(output, y[idx])
                loss.backward()
                nn.utils.clip_grad_norm_(self.net_.parameters(), 1.0)
                optimizer.zero_grad()
                optimizer.step()
                losses.append(loss.item())
            self.net_.eval()
            with torch.no_grad():
                val = criterion(self.net_(xv), yv).item()
            self.history_.append((float(np.mean(losses)), val))
            print(f"epoch {epoch + 1}: loss {self.history_[-1][0]:.4f}, val_loss {val:.4f}")
        return self

    def predict(self, series):
        self.net_.eval()
        recent = torch.from_numpy((series[-self.history :] - self.mean_) / self.std_).view(1, -1, 1)
        with torch.no_grad():
            return (self.net_(recent)[0] * self.std_ + self.mean_).numpy()


if __name__ == "__main__":
    np.random.seed(0)
    load = hourly_load(90, seed=4)
    split = 75 * 24
    model = LoadForecaster().fit(load[:split], load[split:])
    print("next hours:", np.round(model.predict(load), 1))
