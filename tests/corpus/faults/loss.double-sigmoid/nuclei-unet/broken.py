import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
np.random.seed(7)


def stain(n, size=32):
    """Grey slides with bright round nuclei, and their masks."""
    yy, xx = np.mgrid[0:size, 0:size]
    images, masks = np.zeros((n, size, size), np.float32), np.zeros((n, size, size), np.float32)
    for i in range(n):
        for _ in range(np.random.randint(3, 7)):
            cy, cx, r = np.random.uniform(4, size - 4, 2).tolist() + [np.random.uniform(3, 6)]
            masks[i][(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1
        images[i] = masks[i] * np.random.uniform(0.8, 1.4) + np.random.normal(0, 0.5, (size, size))
    images = (images - images.mean()) / images.std()
    return torch.from_numpy(images)[:, None], torch.from_numpy(masks)[:, None]


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
        self.bottom = double_conv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec2 = double_conv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec1 = double_conv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.dec2(torch.cat([self.up2(b), d2], 1))
        u1 = self.dec1(torch.cat([self.up1(u2), d1], 1))
        return torch.sigmoid(self.outc(u1))


class SegmentationLoss(nn.Module):
    def __init__(self, dice_weight=0.5):
        super().__init__()
        self.dice_weight = dice_weight
        self.bce = nn.BCEWithLogitsLoss()

    def forward(self, prob, mask):
        overlap = (prob * mask).sum((1, 2, 3))
        dice = 1 - (2 * overlap + 1) / (prob.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return self.bce(prob, mask) + self.dice_weight * dice.mean()


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for image, mask in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(image)
    return total / len(loader.dataset)


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    scores = []
    for image, mask in loader:
        pred = (model(image) > 0.5).float()
        union = ((pred + mask) > 0).float().sum((1, 2, 3))
        scores.append((pred * mask).sum((1, 2, 3)) / union.clamp(min=1))
    return torch.cat(scores).mean().item()


if __name__ == "__main__":
    train_loader = DataLoader(TensorDataset(*stain(160)), batch_size=8, shuffle=True)
    val_loader = DataLoader(TensorDataset(*stain(32)), batch_size=16)
    net = UNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    criterion = SegmentationLoss()
    for epoch in range(1, 5):
        loss = train_one_epoch(net, train_loader, criterion, opt)
        print(f"[{epoch}] loss={loss:.4f} val_iou={mean_iou(net, val_loader):.3f}")
