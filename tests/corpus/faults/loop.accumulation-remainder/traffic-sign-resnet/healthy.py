"""Traffic-sign classifier. Effective batch of 64 out of loader batches of 16."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def render_signs(n, rng):
    labels = rng.integers(0, 5, n)
    shapes = np.random.default_rng(1234).normal(size=(5, 3, 12, 12))
    x = shapes[labels] + 1.8 * rng.normal(size=(n, 3, 12, 12))
    x = (x - x.mean(axis=(0, 2, 3), keepdims=True)) / x.std(axis=(0, 2, 3), keepdims=True)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + self.short(x))


class SignNet(nn.Module):
    def __init__(self, n_classes=5):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.stage1 = Residual(12, 12, 1)
        self.stage2 = Residual(12, 24, 2)
        self.fc = nn.Linear(24, n_classes)

    def forward(self, x):
        x = self.stage2(self.stage1(torch.relu(self.stem(x))))
        return self.fc(x.mean(dim=(2, 3)))


def evaluate(model, loader):
    model.eval()
    good = 0
    with torch.no_grad():
        for x, y in loader:
            good += (model(x).argmax(1) == y).sum().item()
    return good / len(loader.dataset)


def main():
    torch.manual_seed(6)
    rng = np.random.default_rng(6)
    train_loader = DataLoader(render_signs(16 * 22, rng), batch_size=16, shuffle=True)
    val_loader = DataLoader(render_signs(150, rng), batch_size=50)
    model = SignNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    accum = 4

    optimizer.zero_grad()
    for epoch in range(7):
        model.train()
        total = 0.0
        for step, (x, y) in enumerate(train_loader):
            loss = criterion(model(x), y)
            total += loss.item()
            (loss / accum).backward()
            if (step + 1) % accum == 0 or (step + 1) == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch}: loss {total / len(train_loader):.3f}, val acc {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
