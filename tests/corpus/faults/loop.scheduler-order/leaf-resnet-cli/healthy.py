"""Leaf disease spots: a small residual CNN trained from the command line."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, TensorDataset


def get_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--milestones", type=int, nargs="+", default=[4, 6])
    parser.add_argument("--gamma", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=5)
    return parser


def make_leaves(count, generator):
    images = 0.5 * torch.randn(count, 3, 16, 16, generator=generator)
    labels = torch.randint(0, 3, (count,), generator=generator)
    for image, label in zip(images, labels.tolist()):
        for _ in range(3):
            top, left = torch.randint(0, 12, (2,), generator=generator).tolist()
            if label == 0:
                image[0, top : top + 4, left : left + 4] += 1.5
            elif label == 1:
                image[2, top : top + 4, left : left + 4] += 1.5
            else:
                image[1, top : top + 2, :] -= 1.0
    mean = images.mean(dim=(0, 2, 3), keepdim=True)
    std = images.std(dim=(0, 2, 3), keepdim=True)
    return TensorDataset((images - mean) / std, labels)


class Block(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False), nn.BatchNorm2d(channels_out)
        )

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        Block(12, 16, 2),
        Block(16, 24, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 3),
    )


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def test(model, loader):
    model.eval()
    correct = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return correct / len(loader.dataset)


def main():
    args = get_parser().parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(make_leaves(384, generator), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(make_leaves(128, generator), batch_size=64)

    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=args.milestones, gamma=args.gamma)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, train_loader, criterion, optimizer)
        accuracy = test(model, test_loader)
        scheduler.step()
        print(f"epoch {epoch:2d} loss {loss:.4f} test accuracy {accuracy:.3f} next lr {scheduler.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()
