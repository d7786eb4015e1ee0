"""Predict whether a pump will fail within the week from a day's worth of sensor summaries."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_pumps(num_pumps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    vibration = rng.gamma(2.0, 1.5, num_pumps)
    temperature = rng.normal(60.0, 8.0, num_pumps)
    pressure = rng.normal(4.2, 0.6, num_pumps)
    hours = rng.uniform(0.0, 9000.0, num_pumps)
    current = rng.normal(11.0, 1.4, num_pumps) + 0.2 * vibration
    oil = rng.normal(0.0, 1.0, num_pumps)
    risk = 0.8 * (vibration - 3.0) + 0.09 * (temperature - 60.0) - 1.2 * (pressure - 4.2) + (hours - 4500.0) / 3000.0 + 0.5 * oil
    fails = (risk + rng.logistic(0.0, 0.4, num_pumps) > 0.0).astype(np.float32)
    table = np.stack([vibration, temperature, pressure, hours, current, oil], axis=1).astype(np.float32)
    return table, fails


class PumpNet(nn.Module):
    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(num_features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
            nn.Sigmoid(),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.layers(features).squeeze(1)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, criterion: nn.Module) -> tuple[float, float]:
    model.eval()
    loss_sum, correct, count = 0.0, 0, 0
    for features, target in loader:
        probability = model(features)
        loss_sum += criterion(probability, target).item() * len(target)
        correct += int(((probability > 0.5).float() == target).sum())
        count += len(target)
    model.train()
    return loss_sum / count, correct / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    table, fails = make_pumps(1200, np.random.default_rng(args.seed))
    train_x, valid_x = table[:960], table[960:]
    train_y, valid_y = fails[:960], fails[960:]
    mean, std = train_x.mean(axis=0), train_x.std(axis=0)
    train_set = TensorDataset(torch.from_numpy((train_x - mean) / std), torch.from_numpy(train_y))
    valid_set = TensorDataset(torch.from_numpy((valid_x - mean) / std), torch.from_numpy(valid_y))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=240)

    model = PumpNet(table.shape[1], args.hidden)
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        running = 0.0
        for features, target in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(features), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        valid_loss, accuracy = evaluate(model, valid_loader, criterion)
        print(f"epoch {epoch}: train {running / len(train_loader):.4f}  valid {valid_loss:.4f}  accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
