"""Pre-train on coarse labels, then fine-tune on fine ones."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class TinyResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv3 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.gn = nn.GroupNorm(4, 32)
        self.fc = nn.Linear(32 * 4, num_classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = x + F.relu(self.conv2(x))
        x = F.relu(self.gn(self.conv3(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 2).flatten(1))


def images(n, seed):
    g = torch.Generator().manual_seed(seed)
    protos = torch.randn(6, 1, 10, 10, generator=torch.Generator().manual_seed(77))
    fine = torch.randint(0, 6, (n,), generator=g)
    x = (protos[fine] + 0.8 * torch.randn(n, 1, 10, 10, generator=g)) / 1.28
    return x, fine


def fit(model, optimizer, loader, epochs, tag):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{tag} epoch {epoch}: {total / len(loader):.4f}")


def main():
    set_seed(15)
    x, fine = images(640, 0)
    coarse_loader = DataLoader(TensorDataset(x, fine // 3), batch_size=32, shuffle=True)
    fine_loader = DataLoader(TensorDataset(x, fine), batch_size=32, shuffle=True)

    model = TinyResNet(num_classes=2)
    fit(model, torch.optim.Adam(model.parameters(), lr=2e-3), coarse_loader, 2, "coarse")

    model.fc = nn.Linear(model.fc.in_features, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    fit(model, optimizer, fine_loader, 4, "fine")

    test_x, test_y = images(240, 1)
    model.eval()
    with torch.no_grad():
        print(f"test accuracy {(model(test_x).argmax(1) == test_y).float().mean():.3f}")


if __name__ == "__main__":
    main()
