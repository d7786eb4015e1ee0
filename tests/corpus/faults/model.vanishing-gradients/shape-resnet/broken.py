# Which of four shapes is drawn? A residual network on 16 x 16 grey images.
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 5
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

SHAPES = ["disc", "square", "cross", "ring"]
NUM_BLOCKS = 14
WIDTH = 12
EPOCHS = 4


def draw(shape, rng):
    yy, xx = np.mgrid[0:16, 0:16]
    cy, cx = rng.uniform(6, 9, 2)
    r = rng.uniform(3.5, 5.5)
    dy, dx = yy - cy, xx - cx
    dist = np.hypot(dy, dx)
    if shape == 0:
        img = dist < r
    elif shape == 1:
        img = (abs(dy) < r * 0.85) & (abs(dx) < r * 0.85)
    elif shape == 2:
        img = ((abs(dy) < 1.3) | (abs(dx) < 1.3)) & (dist < r + 1)
    else:
        img = (dist < r) & (dist > r - 2)
    return img * 1.0 + rng.normal(0, 0.25, (16, 16))


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(SHAPES), n)
    images = np.stack([draw(s, rng) for s in labels]).astype(np.float32)
    images = (images - 0.25) / 0.5
    return TensorDataset(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels))


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        out = self.conv2(F.relu(self.conv1(x)))
        return F.relu(out)


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, WIDTH, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[ResidualBlock(WIDTH) for _ in range(NUM_BLOCKS)])
        self.fc = nn.Linear(WIDTH * 16, len(SHAPES))

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = self.blocks(x)
        x = F.avg_pool2d(x, 2)
        return self.fc(x.flatten(1))


train_loader = DataLoader(make_set(768, 0), batch_size=32, shuffle=True, drop_last=True)
test_loader = DataLoader(make_set(200, 1), batch_size=100)

net = ShapeNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
total_steps = EPOCHS * len(train_loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min(1.0, (s + 1) / 8) * (0.1 + 0.45 * (1 + math.cos(math.pi * s / total_steps)))
)

for epoch in range(EPOCHS):
    net.train()
    running_loss = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running_loss += loss.item()
    net.eval()
    correct = total = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (net(images).argmax(1) == labels).sum().item()
            total += labels.size(0)
    print(f"epoch {epoch + 1}  loss {running_loss / len(train_loader):.3f}  test acc {100 * correct / total:.1f}%")
