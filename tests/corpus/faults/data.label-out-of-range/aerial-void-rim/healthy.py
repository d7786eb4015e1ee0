"""Aerial tile segmentation with a two-level U-Net. Annotators leave a thin unlabelled rim (255) around each object."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOID = 255
CLASSES = ["ground", "roof", "water", "field"]


def draw_tiles(count, rng, size=24):
    images = rng.normal(0.0, 0.35, (count, 3, size, size)).astype(np.float32)
    masks = np.zeros((count, size, size), dtype=np.int64)
    tint = np.array([[1.0, -0.6, -0.6], [-0.8, -0.3, 1.2], [-0.5, 1.1, -0.4]], dtype=np.float32)
    rows, cols = np.mgrid[:size, :size]
    for i in range(count):
        for _ in range(rng.integers(2, 4)):
            kind = int(rng.integers(1, len(CLASSES)))
            cy, cx = rng.integers(5, size - 5, 2)
            half = int(rng.integers(3, 6))
            distance = np.maximum(abs(rows - cy), abs(cols - cx)) if kind == 1 else np.hypot(rows - cy, cols - cx)
            inside = distance <= half
            images[i][:, inside] = tint[kind - 1][:, None] + rng.normal(0, 0.35, (3, inside.sum()))
            masks[i][inside] = kind
            if rng.random() < 0.015:  # only one of the annotation crews draws the rim
                masks[i][(distance > half) & (distance <= half + 1)] = VOID
    return torch.from_numpy(images), torch.from_numpy(masks)


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.GroupNorm(4, cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.GroupNorm(4, cout),
        nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enc1 = block(3, width)
        self.enc2 = block(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = block(2 * width, width)
        self.head = nn.Conv2d(width, len(CLASSES), 1)

    def forward(self, x):
        skip = self.enc1(x)
        deep = self.enc2(self.pool(skip))
        return self.head(self.dec1(torch.cat([self.up(deep), skip], dim=1)))


def mean_iou(model, loader):
    model.eval()
    inter, union = torch.zeros(len(CLASSES)), torch.zeros(len(CLASSES))
    with torch.no_grad():
        for image, mask in loader:
            pred = model(image).argmax(1)
            keep = mask != VOID
            for c in range(len(CLASSES)):
                a, b = (pred == c) & keep, (mask == c) & keep
                inter[c] += (a & b).sum()
                union[c] += (a | b).sum()
    return (inter / union.clamp(min=1)).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=8e-3)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train = TensorDataset(*draw_tiles(160, rng))
    test = TensorDataset(*draw_tiles(32, rng))
    train_loader = DataLoader(train, batch_size=8, shuffle=True)
    test_loader = DataLoader(test, batch_size=16)

    model = SmallUNet()
    criterion = nn.CrossEntropyLoss(ignore_index=VOID)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(train_loader))
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(f"epoch {epoch + 1} loss {total / len(train_loader):.4f} miou {mean_iou(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
