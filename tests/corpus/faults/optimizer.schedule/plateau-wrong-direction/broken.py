import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, random_split


class ShapesWithHoles(Dataset):
    """Segment a filled disc on a noisy grid."""

    def __init__(self, count=480, size=16, seed=0):
        rng = np.random.default_rng(seed)
        axis = np.arange(size)
        yy, xx = np.meshgrid(axis, axis, indexing="ij")
        cy, cx = rng.uniform(4, 12, (2, count, 1, 1))
        radius = rng.uniform(2.5, 5, (count, 1, 1))
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < radius**2).astype(np.float32)
        image = mask + 0.6 * rng.standard_normal(mask.shape)
        image = (image - image.mean()) / image.std()
        self.image = torch.tensor(image[:, None], dtype=torch.float32)
        self.mask = torch.tensor(mask[:, None])

    def __len__(self):
        return len(self.image)

    def __getitem__(self, i):
        return self.image[i], self.mask[i]


class Segmenter(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.GroupNorm(3, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=2, dilation=2),
            nn.ReLU(),
            nn.Conv2d(channels, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def objective(logits, mask):
    overlap = 2 * (logits.sigmoid() * mask).sum((1, 2, 3)) / (logits.sigmoid() + mask).sum((1, 2, 3))
    return F.binary_cross_entropy_with_logits(logits, mask) + 0.5 * (1 - overlap).mean()


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        total = sum(objective(model(x), m).item() * len(x) for x, m in loader)
    return total / len(loader.dataset)


def main():
    random.seed(66)
    np.random.seed(66)
    torch.manual_seed(66)
    train_set, val_set = random_split(ShapesWithHoles(), [400, 80])
    train, val = DataLoader(train_set, 40, shuffle=True), DataLoader(val_set, 40)
    model = Segmenter()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    scheduler = ReduceLROnPlateau(optimizer, mode="max", factor=0.1, patience=0)
    for epoch in range(10):
        model.train()
        for x, m in train:
            optimizer.zero_grad()
            loss = objective(model(x), m)
            loss.backward()
            optimizer.step()
        score = validate(model, val)
        scheduler.step(score)
        print(f"epoch {epoch} train {loss.item():.4f} val {score:.4f} lr {optimizer.param_groups[0]['lr']:.1e}")


if __name__ == "__main__":
    main()
