"""Second-hand car prices: residual MLP with LayerNorm."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class PriceModel(nn.Module):
    def __init__(self, columns, width=40, depth=3):
        super().__init__()
        self.first = nn.Linear(columns, width)
        self.blocks = nn.Sequential(*[ResBlock(width) for _ in range(depth)])
        self.last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, x):
        return self.last(self.blocks(self.first(x)))[:, 0]


def cars(n, seed):
    rng = np.random.default_rng(seed)
    age, km, power = rng.gamma(3, 2, n), rng.gamma(4, 25, n), rng.normal(110, 30, n)
    extras = rng.normal(size=(n, 5))
    price = 10.2 - 0.11 * age - 0.004 * km + 0.008 * power + 0.1 * extras[:, 0] * extras[:, 1] + 0.05 * rng.normal(size=n)
    x = np.column_stack([age, km, power, extras])
    return x, price


def standardise(train, test):
    mean, std = train.mean(0), train.std(0)
    return (train - mean) / std, (test - mean) / std


def get_optimizer(model, lr, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=weight_decay)


def main():
    torch.manual_seed(58)
    np.random.seed(58)
    (x_train, y_train), (x_test, y_test) = cars(1280, 1), cars(256, 2)
    x_train, x_test = standardise(x_train, x_test)
    y_train, y_test = standardise(y_train, y_test)
    as_tensors = lambda *arrays: [torch.tensor(a, dtype=torch.float32) for a in arrays]  # noqa: E731
    loader = DataLoader(TensorDataset(*as_tensors(x_train, y_train)), batch_size=64, shuffle=True)
    x_test, y_test = as_tensors(x_test, y_test)
    model = PriceModel(x_train.shape[1])
    optimizer = get_optimizer(model, lr=1e-3, weight_decay=0.1)
    for epoch in range(5):
        model.train()
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.huber_loss(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            rmse = (model(x_test) - y_test).pow(2).mean().sqrt().item()
        print(f"epoch {epoch} huber {running / len(loader):.4f} test rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
