"""Segment nuclei in microscopy tiles with a two-level U-Net."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

random.seed(21)
np.random.seed(21)
torch.manual_seed(21)

SIZE = 24


def scan_slide(num_tiles):
    """Stands for the two folders of the export: tile_<n>.png and tile_<n>_mask.png."""
    rng = np.random.default_rng(21)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    images, masks = {}, {}
    for n in range(1, num_tiles + 1):
        mask = np.zeros((SIZE, SIZE), dtype=bool)
        for _ in range(rng.integers(2, 5)):
            cy, cx = rng.uniform(2, SIZE - 2, 2)
            mask |= (yy - cy) ** 2 + (xx - cx) ** 2 < rng.uniform(2.5, 4.5) ** 2
        stain = 0.3 + 0.4 * mask + rng.normal(0, 0.12, mask.shape)
        images[f"tile_{n}.png"] = np.clip(stain, 0, 1).astype(np.float32)
        masks[f"tile_{n}_mask.png"] = mask.astype(np.float32)
    return images, masks


def tile_number(name):
    return int(name.removesuffix(".png").split("_")[1])


class Nuclei(Dataset):
    def __init__(self, images, masks, mean=0.4, std=0.2):
        self.images, self.masks = images, masks
        self.mean, self.std = mean, std  # of the scanner's calibration slide
        self.image_names = sorted(images, key=tile_number)
        self.mask_names = sorted(masks, key=tile_number)

    def __len__(self):
        return len(self.image_names)

    def __getitem__(self, index):
        image = (self.images[self.image_names[index]] - self.mean) / self.std
        mask = self.masks[self.mask_names[index]]
        return torch.from_numpy(image)[None], torch.from_numpy(mask)[None]


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enc1 = double_conv(1, width)
        self.enc2 = double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec2 = double_conv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        b = self.bottom(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([self.up2(b), e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.out(d1)


def dice(logits, mask):
    found = (logits.sigmoid() > 0.5).float()
    return (2 * (found * mask).sum() / (found.sum() + mask.sum()).clamp(min=1)).item()


full = Nuclei(*scan_slide(320))
train_set, val_set = random_split(full, [256, 64], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
val_loader = DataLoader(val_set, batch_size=64)

model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
epochs = 4

for epoch in range(epochs):
    model.train()
    train_loss = 0.0
    for image, mask in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    with torch.no_grad():
        image, mask = next(iter(val_loader))
        logits = model(image)
        val_loss = F.binary_cross_entropy_with_logits(logits, mask).item()
    print(f"[{epoch + 1}/{epochs}] train {train_loss:.4f} val {val_loss:.4f} dice {dice(logits, mask):.3f}")
