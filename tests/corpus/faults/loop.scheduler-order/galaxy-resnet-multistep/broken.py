from __future__ import print_function

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Galaxy morphology with a small ResNet")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)


def galaxies(count, rng):
    """Round, edge-on and barred blobs in noise."""
    y, x = np.mgrid[-1:1:20j, -1:1:20j]
    labels = rng.integers(0, 3, count)
    pictures = np.empty((count, 1, 20, 20), dtype=np.float32)
    for i, kind in enumerate(labels):
        angle = rng.uniform(0, np.pi)
        u, v = x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)
        if kind == 0:
            light = np.exp(-(u**2 + v**2) / 0.15)
        elif kind == 1:
            light = np.exp(-(u**2 / 0.4 + v**2 / 0.02))
        else:
            light = np.exp(-(u**2 + v**2) / 0.05) + 0.7 * np.exp(-(((u**2 + v**2) ** 0.5 - 0.6) ** 2) / 0.01)
        pictures[i, 0] = light + rng.normal(0, 0.25, light.shape)
    return pictures, labels


rng = np.random.default_rng(args.seed)
train_x, train_y = galaxies(640, rng)
test_x, test_y = galaxies(160, rng)
mean, std = train_x.mean(), train_x.std()
train_data = TensorDataset(torch.from_numpy((train_x - mean) / std), torch.from_numpy(train_y))
test_data = TensorDataset(torch.from_numpy((test_x - mean) / std), torch.from_numpy(test_y))
train_loader = DataLoader(train_data, batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(test_data, batch_size=80)


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super(ResNet, self).__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.layer1 = BasicBlock(8, 8)
        self.layer2 = BasicBlock(8, 16, stride=2)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


model = ResNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
scheduler = MultiStepLR(optimizer, milestones=[3, 5], gamma=0.2)


def train(epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            print("Train Epoch: {} [{}/{}] Loss: {:.4f}".format(epoch, batch_idx, len(train_loader), loss.item()))


def test():
    model.eval()
    correct, total = 0, 0.0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            total += F.cross_entropy(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    n = len(test_loader.dataset)
    print("Test loss: {:.4f}, accuracy: {:.1f}%".format(total / n, 100.0 * correct / n))


for epoch in range(1, args.epochs + 1):
    scheduler.step()
    train(epoch)
    test()
