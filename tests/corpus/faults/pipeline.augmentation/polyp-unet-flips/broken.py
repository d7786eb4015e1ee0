# U-Net for polyp segmentation in small endoscopy crops
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

SIZE = 32


def make_case(rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    cy, cx = rng.uniform(7, SIZE - 7, 2)
    ry, rx = rng.uniform(5, 8, 2)
    mask = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
    tissue = np.stack([rng.normal(m, 0.35, (SIZE, SIZE)) for m in (0.3, -0.1, -0.2)])
    tissue[0] += mask * 0.9
    tissue[1] -= mask * 0.5
    glare = ((yy - rng.uniform(0, SIZE)) ** 2 + (xx - rng.uniform(0, SIZE)) ** 2) < 6
    tissue += glare * 1.0
    return tissue.astype(np.float32), mask.astype(np.float32)


class PolypDataset(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.default_rng(seed)
        self.cases = [make_case(rng) for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.cases)

    def __getitem__(self, i):
        image, mask = self.cases[i]
        image, mask = torch.from_numpy(image), torch.from_numpy(mask)[None]
        if self.augment:
            if random.random() < 0.5:
                image = torch.flip(image, dims=[-1])
            if random.random() < 0.5:
                image = torch.flip(image, dims=[-2])
            image = image * random.uniform(0.9, 1.1)
        return image, mask


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
    def __init__(self, width=10):
        super().__init__()
        self.down1 = double_conv(3, width)
        self.down2 = double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec2 = double_conv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.dec2(torch.cat([self.up2(b), d2], dim=1))
        u1 = self.dec1(torch.cat([self.up1(u2), d1], dim=1))
        return self.out(u1)


def dice_loss(logits, target):
    p = torch.sigmoid(logits).flatten(1)
    t = target.flatten(1)
    overlap = (p * t).sum(1)
    return (1 - (2 * overlap + 1) / (p.sum(1) + t.sum(1) + 1)).mean()


train_loader = DataLoader(PolypDataset(240, seed=1, augment=True), batch_size=12, shuffle=True)
val_loader = DataLoader(PolypDataset(60, seed=2), batch_size=20)

net = UNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(4):
    net.train()
    total = 0.0
    for image, mask in train_loader:
        logits = net(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    inter = union = 0.0
    with torch.no_grad():
        for image, mask in val_loader:
            pred = net(image) > 0
            inter += (pred & (mask > 0)).sum().item()
            union += (pred | (mask > 0)).sum().item()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f} val IoU {inter / max(union, 1):.3f}")
