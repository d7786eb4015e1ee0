"""Segments bright round nuclei in noisy microscope-like crops with a small U-Net."""
import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NucleiDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.RandomState(seed)
        yy, xx = np.mgrid[0:24, 0:24]
        images, masks = [], []
        for _ in range(n):
            mask = np.zeros((24, 24), dtype=np.float32)
            for _ in range(rng.randint(1, 4)):
                cy, cx, r = rng.uniform(4, 20), rng.uniform(4, 20), rng.uniform(2.5, 5.0)
                mask = np.maximum(mask, ((yy - cy) ** 2 + (xx - cx) ** 2 < r**2).astype(np.float32))
            image = 0.2 + 0.5 * mask + 0.15 * rng.randn(24, 24)
            images.append(image)
            masks.append(mask)
        self.images = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
        self.images = (self.images - 0.31) / 0.27
        self.masks = torch.tensor(np.stack(masks)).unsqueeze(1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.masks[index]


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Dropout2d(0.15),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = double_conv(1, width)
        self.down2 = double_conv(width, width * 2)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.merge = double_conv(width * 2, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(self.pool(skip))
        x = self.merge(torch.cat([self.up(deep), skip], dim=1))
        return self.out(x)


def dice(logits, masks):
    pred = (logits.sigmoid() > 0.5).float()
    inter = (pred * masks).sum()
    return 2 * inter, pred.sum() + masks.sum()


def evaluate(net, loader, criterion):
    net.eval()
    total, count, inter, union = 0.0, 0, 0.0, 0.0
    with torch.no_grad():
        for image, mask in loader:
            logits = net(image)
            total += criterion(logits, mask).item() * len(image)
            count += len(image)
            a, b = dice(logits, mask)
            inter += a.item()
            union += b.item()
    return total / count, inter / union


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_loader = DataLoader(NucleiDataset(256, 1), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(NucleiDataset(64, 2), batch_size=args.batch_size)
    net = UNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        net.train()
        running = 0.0
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(image), mask)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(image)
        val_loss, val_dice = evaluate(net, val_loader, criterion)
        print(f"epoch {epoch + 1} train {running / 256:.4f} val {val_loss:.4f} dice {val_dice:.3f}")


if __name__ == "__main__":
    main()
