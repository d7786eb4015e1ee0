"""Leaf disease photos: one folder per disease, small residual network, SGD with one-cycle."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, random_split

DISEASES = ("healthy", "rust", "mildew", "blight", "scab", "mosaic")


class DiseaseFolder(Dataset):
    """All photos of one folder, in file order."""

    def __init__(self, label, count=150, side=16):
        rng = np.random.default_rng(1000 + label)
        yy, xx = np.mgrid[:side, :side] / side
        texture = np.sin(2 * np.pi * ((1 + label % 3) * xx + (1 + label // 3) * yy))
        tone = np.random.default_rng(label).normal(0, 0.5, (3, 1, 1))
        self.photos = rng.normal(0, 1.0, (count, 3, side, side)) + 0.7 * texture + tone
        self.label = label

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, index):
        return torch.tensor(self.photos[index], dtype=torch.float32), self.label


class Residual(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.short(x))


class LeafNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 12, 3, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            Residual(12, 12),
            Residual(12, 24, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, len(DISEASES)),
        )


def accuracy(model, loader):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for x, y in loader:
            good += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return good / total


def main(epochs=4):
    torch.manual_seed(21)
    np.random.seed(21)
    train_parts, val_parts = [], []
    for label in range(len(DISEASES)):
        folder = DiseaseFolder(label)
        a, b = random_split(folder, [120, 30], generator=torch.Generator().manual_seed(label))
        train_parts.append(a)
        val_parts.append(b)
    train_loader = DataLoader(ConcatDataset(train_parts), batch_size=24, drop_last=True)
    val_loader = DataLoader(ConcatDataset(val_parts), batch_size=60)

    model = LeafNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(train_loader), pct_start=0.25
    )
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        mean_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            mean_loss += loss.item() / len(train_loader)
        print(f"epoch {epoch}: loss {mean_loss:.3f}, val acc {accuracy(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
