"""Small CNN on an "image folder" that lives in memory: names, pixels, and an annotation table."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 1234
SIDE = 12
CLASSES = ("vertical", "horizontal", "diagonal", "blob")


def draw(kind, rng):
    img = rng.normal(0.0, 1.0, size=(SIDE, SIDE)).astype(np.float32)
    c = rng.integers(2, SIDE - 2)
    if kind == "vertical":
        img[:, c] += 2.0
    elif kind == "horizontal":
        img[c, :] += 2.0
    elif kind == "diagonal":
        img[np.arange(SIDE), np.arange(SIDE)] += 2.0
    else:
        img[c - 2:c + 2, c - 2:c + 2] += 2.0
    return img


def make_folder(count, rng):
    """Returns {file name: pixels} and the annotation rows [(file name, class name)]."""
    files, rows = {}, []
    for i in range(count):
        kind = CLASSES[rng.integers(len(CLASSES))]
        name = f"img_{i}.png"
        files[name] = draw(kind, rng)
        rows.append((name, kind))
    return files, rows


class FolderDataset(Dataset):
    def __init__(self, files, rows, mean, std):
        self.names = sorted(files)
        self.pixels = [(files[n] - mean) / std for n in self.names]
        self.targets = [CLASSES.index(kind) for _, kind in sorted(rows)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return torch.from_numpy(self.pixels[i])[None], self.targets[i]


class SmallCNN(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 3 * 3, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = total = 0
    for images, targets in loader:
        hits += (net(images).argmax(-1) == targets).sum().item()
        total += len(targets)
    net.train()
    return hits / total


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train_files, train_rows = make_folder(1280, rng)
    val_files, val_rows = make_folder(320, rng)
    stacked = np.stack(list(train_files.values()))
    mean, std = stacked.mean(), stacked.std()

    train_set = FolderDataset(train_files, train_rows, mean, std)
    val_set = FolderDataset(val_files, val_rows, mean, std)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(SEED))
    val_loader = DataLoader(val_set, batch_size=64)

    net = SmallCNN(len(CLASSES))
    opt = torch.optim.SGD(net.parameters(), lr=0.015, momentum=0.9)
    for epoch in range(2):
        for step, (images, targets) in enumerate(train_loader):
            loss = F.cross_entropy(net(images), targets)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step:3d} loss {loss.item():.4f}")
        print(f"epoch {epoch} val accuracy {accuracy(net, val_loader):.3f}")


if __name__ == "__main__":
    main()
