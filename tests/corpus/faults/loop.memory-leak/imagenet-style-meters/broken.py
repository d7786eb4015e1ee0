import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser("tiny resnet on synthetic textures")
    p.add_argument("--epochs", default=2, type=int)
    p.add_argument("-b", "--batch-size", default=32, type=int)
    p.add_argument("--lr", default=0.05, type=float)
    p.add_argument("--momentum", default=0.9, type=float)
    p.add_argument("--print-freq", default=15, type=int)
    p.add_argument("--seed", default=0, type=int)
    return p.parse_args()


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt=":f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + (x if self.down is None else self.down(x)))


class TinyResNet(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.layers = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 16, 2), BasicBlock(16, 32, 2))
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean(dim=(2, 3)))


def textures(n, seed):
    """Stripes at four orientations, random phase and frequency."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 4, (n,), generator=g)
    angle = label * (np.pi / 4) + 0.15 * torch.randn(n, generator=g)
    freq = 0.8 + 0.6 * torch.rand(n, generator=g)
    phase = 6.28 * torch.rand(n, generator=g)
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    wave = torch.cos(angle)[:, None, None] * xx + torch.sin(angle)[:, None, None] * yy
    img = 1.2 * torch.sin(freq[:, None, None] * wave + phase[:, None, None]) + 0.5 * torch.randn(n, 16, 16, generator=g)
    return TensorDataset(img.unsqueeze(1), label)


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item() * 100.0


def train(loader, model, criterion, optimizer, losses, epoch, args):
    batch_time = AverageMeter("Time", ":.3f")
    top1 = AverageMeter("Acc@1", ":.1f")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        output = model(images)
        loss = criterion(output, target)

        losses.update(loss, images.size(0))
        top1.update(accuracy(output, target), images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            print(f"Epoch [{epoch}][{i}/{len(loader)}]", batch_time, losses, top1, sep="\t")


def validate(loader, model, criterion):
    losses = AverageMeter("Loss", ":.3f")
    top1 = AverageMeter("Acc@1", ":.1f")
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target), images.size(0))
    print(" * ", losses, top1)


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    model = TinyResNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    train_loader = DataLoader(textures(960, 1), args.batch_size, shuffle=True)
    val_loader = DataLoader(textures(256, 2), 128)
    losses = AverageMeter("Loss", ":.3f")
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, losses, epoch, args)
        validate(val_loader, model, criterion)
        scheduler.step()


if __name__ == "__main__":
    main()
