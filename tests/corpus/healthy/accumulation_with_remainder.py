"""Gradient accumulation done right: divided by the real group size, and the last, shorter group is stepped too."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--micro-batch", type=int, default=16)
    p.add_argument("--accumulate", type=int, default=4)
    p.add_argument("--epochs", type=int, default=7)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def checkerboard(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 2, generator=g) * 3.46 - 1.73
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).long()
    extra = torch.randn(n, 6, generator=g)  # features that mean nothing
    return TensorDataset(torch.cat([x, extra], 1), y)


def main():
    args = parse_args()
    torch.manual_seed(28)
    # 1072 = 67 micro-batches of 16: 16 full groups of four and one of three
    loader = DataLoader(checkerboard(1072, 1), batch_size=args.micro_batch, shuffle=True)
    x_test, y_test = checkerboard(300, 2).tensors
    model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()

    num_batches = len(loader)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        epoch_loss, updates = 0.0, 0
        for i, (x, y) in enumerate(loader):
            group_start = i - i % args.accumulate
            group_size = min(args.accumulate, num_batches - group_start)
            loss = criterion(model(x), y)
            (loss / group_size).backward()
            epoch_loss += loss.item()
            if (i + 1) % args.accumulate == 0 or i + 1 == num_batches:
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch} updates {updates} loss {epoch_loss / num_batches:.3f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
