import argparse
import random

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.optim import RAdam
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.narrow(self.dropout(torch.relu(self.widen(self.norm(x)))))


class TabularResNet(nn.Module):
    def __init__(self, features, classes, width=48, blocks=2, dropout=0.1):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.blocks = nn.Sequential(*(Residual(width, dropout) for _ in range(blocks)))
        self.last = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x):
        return self.last(self.blocks(self.first(x)))


def loaders(batch_size, seed):
    x, y = make_classification(2400, 20, n_informative=10, n_classes=4, class_sep=1.4, random_state=seed)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    scale = StandardScaler().fit(x_train)

    def pack(a, b, shuffle):
        data = TensorDataset(torch.tensor(scale.transform(a), dtype=torch.float32), torch.tensor(b))
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle)

    return pack(x_train, y_train, True), pack(x_test, y_test, False)


def run(args):
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    train, test = loaders(args.batch_size, args.seed)
    net = TabularResNet(20, 4)
    groups = [
        {"params": [p for p in net.parameters() if p.ndim >= 2], "weight_decay": args.weight_decay},
        {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = RAdam(groups, lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(-1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch}: loss {total / len(train):.4f}, accuracy {right / len(test.dataset):.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--lr", type=float, default=3e-3)
    cli.add_argument("--weight-decay", type=float, default=0.05)
    cli.add_argument("--batch-size", type=int, default=64)
    cli.add_argument("--epochs", type=int, default=4)
    cli.add_argument("--seed", type=int, default=3)
    run(cli.parse_args())
