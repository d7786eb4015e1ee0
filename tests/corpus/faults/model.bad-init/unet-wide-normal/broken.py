"""Segment discs in noisy pictures with a small U-Net."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(14)


def pictures(n, side=24):
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    centre = torch.rand(n, 2) * (side - 10) + 5
    radius = torch.rand(n, 1, 1) * 3 + 2.5
    d = ((yy - centre[:, 0, None, None]) ** 2 + (xx - centre[:, 1, None, None]) ** 2).sqrt()
    mask = (d < radius).float()
    img = mask + 0.5 * torch.randn(n, side, side)
    img = (img - img.mean()) / img.std()
    return img[:, None], mask[:, None]


def double(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.Conv2d(cout, cout, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.enc1, self.enc2, self.mid = double(1, c), double(c, 2 * c), double(2 * c, 4 * c)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.dec2, self.dec1 = double(4 * c, 2 * c), double(2 * c, c)
        self.final = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        y = self.dec2(torch.cat([self.up2(m), b], 1))
        y = self.dec1(torch.cat([self.up1(y), a], 1))
        return self.final(y)


def init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, std=0.6)
        nn.init.zeros_(m.bias)


net = UNet()
net.apply(init)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = pictures(160)
xv, yv = pictures(32)
for epoch in range(5):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(16):
        logits = net(x[idx])
        loss = F.binary_cross_entropy_with_logits(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    net.eval()
    with torch.no_grad():
        pred = net(xv) > 0
        iou = (pred & yv.bool()).sum() / (pred | yv.bool()).sum()
    print(f"epoch {epoch} loss {total / len(x):.4f} iou {iou:.3f}")
