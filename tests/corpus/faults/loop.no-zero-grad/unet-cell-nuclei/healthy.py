#!/usr/bin/env python3
"""Nuclei segmentation on synthetic microscopy tiles with a two-level U-Net."""

import argparse
import logging

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

log = logging.getLogger("nuclei")


class Tiles(Dataset):
    def __init__(self, n=320, size=24, seed=0):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:size, :size]
        images, masks = [], []
        for _ in range(n):
            mask = np.zeros((size, size), bool)
            for _ in range(rng.integers(2, 5)):
                cy, cx, r = rng.uniform(3, size - 3), rng.uniform(3, size - 3), rng.uniform(2.5, 4.5)
                mask |= (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
            images.append(mask * rng.uniform(0.8, 1.4) + 0.6 * rng.standard_normal((size, size)))
            masks.append(mask)
        images = np.stack(images)
        self.images = torch.from_numpy((images - 0.25) / 0.8).float().unsqueeze(1)
        self.masks = torch.from_numpy(np.stack(masks)).float().unsqueeze(1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = double_conv(1, width)
        self.down2 = double_conv(width, 2 * width)
        self.middle = double_conv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec2 = double_conv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        c = self.dec2(torch.cat([self.up2(c), b], dim=1))
        c = self.dec1(torch.cat([self.up1(c), a], dim=1))
        return self.out(c)


def dice(logits, target):
    p = (logits > 0).float()
    return (2 * (p * target).sum() / (p.sum() + target.sum()).clamp(min=1)).item()


def train_one_epoch(net, loader, optimizer, criterion):
    net.train()
    total = 0.0
    for images, masks in loader:
        optimizer.zero_grad()
        loss = criterion(net(images), masks)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(images)
    return total / len(loader.dataset)


@torch.no_grad()
def validate(net, loader):
    net.eval()
    return sum(dice(net(x), y) for x, y in loader) / len(loader)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-e", "--epochs", type=int, default=5)
    parser.add_argument("-b", "--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(4)
    np.random.seed(4)

    train_set, val_set = random_split(Tiles(), [256, 64], generator=torch.Generator().manual_seed(4))
    train_loader = DataLoader(train_set, args.batch, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, args.batch)
    net = UNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=args.lr)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        loss = train_one_epoch(net, train_loader, optimizer, criterion)
        log.info("epoch %d loss %.4f dice %.3f", epoch, loss, validate(net, val_loader))


if __name__ == "__main__":
    main()
