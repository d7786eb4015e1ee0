"""House-price-like regression: (B, 1) predictions against (B, 1) targets, standardised with training statistics only."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Houses(Dataset):
    NUMERIC = 7

    def __init__(self, frame, stats=None):
        x, price = frame[:, :-1], frame[:, -1:]
        if stats is None:
            stats = (x.mean(0), x.std(0), price.mean(0), price.std(0))
        self.stats = stats
        x_mean, x_std, p_mean, p_std = stats
        self.x = torch.tensor((x - x_mean) / x_std, dtype=torch.float32)
        self.y = torch.tensor((price - p_mean) / p_std, dtype=torch.float32)  # (N, 1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def generate_frame(n, seed):
    rng = np.random.default_rng(seed)
    area = rng.lognormal(4.5, 0.35, n)
    rooms = rng.integers(1, 7, n)
    age = rng.uniform(0, 90, n)
    distance = rng.exponential(6.0, n)
    floor = rng.integers(0, 12, n)
    noise_level = rng.normal(55, 8, n)
    energy = rng.normal(120, 40, n)
    price = 900 * area + 11000 * rooms - 550 * age - 5000 * np.sqrt(distance) * (1 + 0.02 * floor) - 180 * energy
    price = price + rng.normal(0, 15000, n)
    return np.stack([area, rooms, age, distance, floor, noise_level, energy, price], axis=1)


def rmse(model, loader):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x) - y).square().sum().item()
            n += y.numel()
    return (total / n) ** 0.5


def main():
    torch.manual_seed(1)
    train = Houses(generate_frame(1600, 10))
    val = Houses(generate_frame(400, 11), stats=train.stats)
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader = DataLoader(val, batch_size=128)
    model = nn.Sequential(nn.Linear(Houses.NUMERIC, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    for epoch in range(6):
        model.train()
        batch_losses = []
        for x, y in train_loader:
            pred = model(x)
            loss = loss_fn(pred, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batch_losses.append(loss.item())
        print(f"epoch={epoch} train_mse={np.mean(batch_losses):.4f} val_rmse={rmse(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
