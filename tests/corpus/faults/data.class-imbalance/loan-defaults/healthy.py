"""Predict which loans default within a year of origination."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

COLUMNS = ["income", "debt_ratio", "utilisation", "age_of_file", "inquiries", "delinquencies", "amount", "term", "purpose"]


def make_loans(count: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    features = rng.normal(size=(count, len(COLUMNS))).astype(np.float32)
    risk = 0.9 * features[:, 1] + 0.8 * features[:, 2] - 0.5 * features[:, 0] + 0.6 * features[:, 5] * (features[:, 4] > 0)
    risk = risk + rng.logistic(scale=0.6, size=count)
    threshold = np.quantile(risk, 0.985)
    return torch.from_numpy(features), torch.from_numpy((risk > threshold).astype(np.float32))


class DefaultModel(nn.Module):
    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(num_features, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).squeeze(-1)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader) -> dict[str, float]:
    model.eval()
    scores, labels = [], []
    for x, y in loader:
        scores.append(model(x))
        labels.append(y)
    predicted = torch.cat(scores) > 0
    truth = torch.cat(labels) > 0.5
    hits = (predicted & truth).sum().item()
    return {
        "accuracy": (predicted == truth).float().mean().item(),
        "recall": hits / max(1, truth.sum().item()),
        "flagged": predicted.float().mean().item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    features, labels = make_loans(8000, np.random.default_rng(args.seed))
    train_x, train_y = features[:6400], labels[:6400]
    train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(features[6400:], labels[6400:]), batch_size=400)

    model = DefaultModel(len(COLUMNS), args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - train_y).sum() / train_y.sum())

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        metrics = evaluate(model, test_loader)
        summary = " ".join(f"{name}={value:.3f}" for name, value in metrics.items())
        print(f"epoch {epoch + 1}: loss={total / len(train_x):.4f} {summary}")


if __name__ == "__main__":
    main()
