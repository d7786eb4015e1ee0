"""Regress thumb and index fingertip positions from small depth images."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, POINTS = 24, 2


class Hands(Dataset):
    """Each fingertip is a blob whose sign tells the finger; positions are (x, y) in [-1, 1]."""

    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        grid = np.linspace(-1, 1, SIDE)
        gx, gy = np.meshgrid(grid, grid)
        self.images = np.zeros((count, 1, SIDE, SIDE), dtype=np.float32)
        self.tips = rng.uniform(-0.85, 0.85, size=(count, POINTS, 2)).astype(np.float32)
        for n in range(count):
            for k in range(POINTS):
                x, y = self.tips[n, k]
                self.images[n, 0] += (1.5 - 2.2 * k) * np.exp(-((gx - x) ** 2 + (gy - y) ** 2) / 0.03)
        self.images += rng.normal(0, 0.05, self.images.shape).astype(np.float32)
        self.images = (self.images - self.images.mean()) / self.images.std()
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, n):
        image, tips = torch.from_numpy(self.images[n]), torch.from_numpy(self.tips[n])
        if self.augment and torch.rand(()) < 0.5:
            image = image.flip(-1)
            tips = tips * torch.tensor([-1.0, 1.0])
        return image, tips


class TipNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(width * 36, 96), nn.ReLU(), nn.Linear(96, 2 * POINTS))

    def forward(self, image):
        return self.head(self.body(image)).view(-1, POINTS, 2)


def fit(model, epochs, train_loader, test_loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.SmoothL1Loss(beta=0.1)
    for epoch in range(epochs):
        model.train()
        losses = []
        for image, tips in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), tips)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            error = torch.cat([(model(image) - tips).norm(dim=-1).mean(1) for image, tips in test_loader]).mean()
        print(f"epoch {epoch} loss {np.mean(losses):.4f} mean distance {error:.3f}")


if __name__ == "__main__":
    random.seed(13)
    np.random.seed(13)
    torch.manual_seed(13)
    train_loader = DataLoader(Hands(960, 13, augment=True), batch_size=24, shuffle=True)
    test_loader = DataLoader(Hands(128, 14, augment=False), batch_size=64)
    fit(TipNet(), 4, train_loader, test_loader)
