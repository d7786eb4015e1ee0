#!/usr/bin/env python

# # Cell segmentation, first try with a small U-Net

# In[1]:

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 42
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

# In[2]:


def draw_cells(n, size=24):
    rng = np.random.default_rng(SEED)
    yy, xx = np.mgrid[0:size, 0:size]
    images, masks = [], []
    for _ in range(n):
        mask = np.zeros((size, size), dtype=bool)
        for _ in range(rng.integers(2, 5)):
            cy, cx, r = rng.uniform(4, size - 4), rng.uniform(4, size - 4), rng.uniform(2.5, 4.5)
            mask |= (yy - cy) ** 2 + (xx - cx) ** 2 < r**2
        images.append(mask * 1.2 + rng.normal(scale=0.6, size=(size, size)))
        masks.append(mask)
    x = np.stack(images)[:, None].astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(np.stack(masks)[:, None].astype(np.float32))


x, y = draw_cells(320)
x = (x - x[:256].mean()) / x[:256].std()
train_dl = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=16, shuffle=True)
valid_dl = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
x.shape, y.mean()

# In[3]:


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
    def __init__(self, base=8):
        super().__init__()
        self.down1 = double_conv(1, base)
        self.down2 = double_conv(base, base * 2)
        self.bottom = double_conv(base * 2, base * 4)
        self.up2 = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.dec2 = double_conv(base * 4, base * 2)
        self.up1 = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.dec1 = double_conv(base * 2, base)
        self.final = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.dec2(torch.cat([self.up2(b), d2], dim=1))
        u1 = self.dec1(torch.cat([self.up1(u2), d1], dim=1))
        return self.final(u1)


# In[4]:


def dice_loss(logits, target, smooth=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum(dim=(1, 2, 3))
    return (1 - (2 * inter + smooth) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + smooth)).mean()


model = UNet()
bce = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)

# In[5]:

history = []
for epoch in range(5):
    model.train()
    for xb, yb in train_dl:
        opt.zero_grad()
        out = model(xb)
        loss = bce(out, yb) + dice_loss(out, yb)
        loss.backward()
        opt.step()
        history.append(loss.item())
    model.eval()
    with torch.no_grad():
        iou = []
        for xb, yb in valid_dl:
            pred = torch.sigmoid(model(xb)) > 0.5
            inter = (pred & (yb > 0.5)).sum()
            union = (pred | (yb > 0.5)).sum()
            iou.append((inter / union).item())
    print(f"epoch {epoch}  train {np.mean(history[-16:]):.4f}  valid IoU {np.mean(iou):.3f}")

# In[6]:

print(history[0], history[-1])
