"""Time-series forecasting with a GRU: split by time, scaled with the past only, windows shuffled inside the training part."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HISTORY, HORIZON = 24, 6


def demand_series(n=1400):
    t = torch.arange(n, dtype=torch.float32)
    daily, weekly = torch.sin(2 * torch.pi * t / 12), torch.cos(2 * torch.pi * t / 30)
    ar = torch.zeros(n)
    eps = torch.randn(n)
    for i in range(1, n):
        ar[i] = 0.6 * ar[i - 1] + 0.3 * eps[i]
    return 50 + 10 * daily + 6 * weekly + 4 * ar


class Windows(Dataset):
    def __init__(self, series):
        self.series = series

    def __len__(self):
        return len(self.series) - HISTORY - HORIZON + 1

    def __getitem__(self, i):
        past = self.series[i : i + HISTORY]
        future = self.series[i + HISTORY : i + HISTORY + HORIZON]
        return past.unsqueeze(-1), future


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, HORIZON)

    def forward(self, x):
        _, state = self.rnn(x)
        return self.head(state.squeeze(0))


def main():
    torch.manual_seed(66)
    series = demand_series()
    cut = 1100
    mean, std = series[:cut].mean(), series[:cut].std()
    scaled = (series - mean) / std
    train_loader = DataLoader(Windows(scaled[:cut]), batch_size=48, shuffle=True)
    test_loader = DataLoader(Windows(scaled[cut:]), batch_size=64)  # starts after the last training value

    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.L1Loss()
    for epoch in range(5):
        model.train()
        running = n = 0
        for past, future in train_loader:
            forecast = model(past)
            loss = criterion(forecast, future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item() * len(past)
            n += len(past)
        model.eval()
        absolute = count = 0
        with torch.no_grad():
            for past, future in test_loader:
                absolute += (model(past) - future).abs().sum().item()
                count += future.numel()
        print(f"epoch {epoch} train mae {running / n:.3f} test mae {absolute / count:.3f} ({absolute / count * std.item():.2f} units)")


if __name__ == "__main__":
    main()
