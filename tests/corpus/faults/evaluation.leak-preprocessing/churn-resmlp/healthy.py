"""Telecom churn: a small residual MLP on account features."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


def load_accounts(n_rows, rng):
    tenure = rng.gamma(2.0, 14.0, n_rows)
    monthly = rng.normal(70, 22, n_rows).clip(15)
    calls = rng.poisson(3.0, n_rows).astype(float)
    overage = rng.lognormal(1.0, 0.9, n_rows)
    data_gb = rng.gamma(3.0, 4.0, n_rows)
    discount = rng.uniform(0, 30, n_rows)
    noise = rng.normal(5, 3, (n_rows, 4))
    score = -0.035 * (tenure - 28) + 0.03 * (monthly - 70) + 0.5 * (calls - 3) + 0.08 * overage - 0.05 * (discount - 15)
    churn = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-1.5 * score))
    features = np.column_stack([tenure, monthly, calls, overage, data_gb, discount, noise])
    return features.astype(np.float32), churn.astype(np.float32)


class ResidualBlock(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        h = torch.relu(self.fc1(self.norm(x)))
        return x + self.fc2(self.drop(h))


class ChurnNet(nn.Module):
    def __init__(self, n_features, width=48, depth=2, p=0.1):
        super().__init__()
        self.stem = nn.Linear(n_features, width)
        self.blocks = nn.Sequential(*[ResidualBlock(width, p) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(-1)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    total, count, scores, labels = 0.0, 0, [], []
    for xb, yb in loader:
        logits = model(xb)
        total += criterion(logits, yb).item() * len(yb)
        count += len(yb)
        scores.append(torch.sigmoid(logits))
        labels.append(yb)
    return total / count, roc_auc_score(torch.cat(labels).numpy(), torch.cat(scores).numpy())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    X, y = load_accounts(1500, rng)
    scaler = StandardScaler()
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=args.seed)
    X_train = scaler.fit_transform(X_train)
    X_val = scaler.transform(X_val)

    train_ds = TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train))
    val_ds = TensorDataset(torch.from_numpy(X_val), torch.from_numpy(y_val))
    train_loader = DataLoader(train_ds, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_ds, batch_size=256)

    model = ChurnNet(X_train.shape[1])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs, eta_min=args.lr / 10)

    for epoch in range(1, args.epochs + 1):
        model.train()
        running, seen = 0.0, 0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(yb)
            seen += len(yb)
        scheduler.step()
        val_loss, auc = evaluate(model, val_loader, criterion)
        print(f"epoch {epoch}  train {running / seen:.4f}  val {val_loss:.4f}  auc {auc:.3f}")


if __name__ == "__main__":
    main()
