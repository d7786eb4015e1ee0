"""Conv net with label smoothing and AdamW decay groups. With smoothing 0.1 the loss cannot reach zero; that is expected."""
import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShapeDataset(Dataset):
    """Discs, crosses, frames and diagonals with noise, standardised."""

    CLASSES = 5

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, self.CLASSES, (size,), generator=g)
        self.shift = torch.randint(-2, 3, (size, 2), generator=g)
        self.noise = torch.randn(size, 14, 14, generator=g)

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        yy, xx = torch.meshgrid(torch.arange(14.0) - 6.5, torch.arange(14.0) - 6.5, indexing="ij")
        yy, xx = yy - self.shift[i, 0], xx - self.shift[i, 1]
        label = int(self.labels[i])
        if label == 0:
            shape = (xx**2 + yy**2) < 12
        elif label == 1:
            shape = (xx.abs() < 1.1) | (yy.abs() < 1.1)
        elif label == 2:
            far = torch.maximum(xx.abs(), yy.abs())
            shape = (far > 2.6) & (far < 4.6)
        elif label == 3:
            shape = (xx - yy).abs() < 1.6
        else:
            shape = (xx + yy).abs() < 1.6
        return (1.8 * (shape.float() - 0.24) + 0.7 * self.noise[i]).unsqueeze(0), label


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.SiLU(), nn.MaxPool2d(2))


def param_groups(model, decay):
    matrix, vector = [], []
    for p in model.parameters():
        (matrix if p.ndim > 1 else vector).append(p)
    return [{"params": matrix, "weight_decay": decay}, {"params": vector, "weight_decay": 0.0}]


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    loss = hits = n = 0.0
    for x, y in loader:
        out = model(x)
        loss += criterion(out, y).item() * len(y)
        hits += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def main(args):
    torch.manual_seed(args.seed)
    model = nn.Sequential(conv_block(1, 12), conv_block(12, 24), nn.Flatten(), nn.Linear(24 * 9, ShapeDataset.CLASSES))
    optimizer = torch.optim.AdamW(param_groups(model, 0.05), lr=args.lr)
    smoothed, plain = nn.CrossEntropyLoss(label_smoothing=args.smoothing), nn.CrossEntropyLoss()
    train = DataLoader(ShapeDataset(640, 1), batch_size=40, shuffle=True)
    val = DataLoader(ShapeDataset(150, 2), batch_size=50)

    k, eps = ShapeDataset.CLASSES, args.smoothing
    hi, lo = 1 - eps + eps / k, eps / k
    print(f"floor of the smoothed loss: {-(hi * math.log(hi) + (k - 1) * lo * math.log(lo)):.3f}")
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = smoothed(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        val_loss, val_acc = validate(model, val, plain)
        print(f"epoch {epoch} smoothed train loss {total:.3f} | val loss {val_loss:.3f} acc {val_acc:.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=5)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--smoothing", type=float, default=0.1)
    cli.add_argument("--seed", type=int, default=0)
    main(cli.parse_args())
