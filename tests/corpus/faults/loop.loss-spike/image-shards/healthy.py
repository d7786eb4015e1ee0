"""Blob classification from image shards on 'disk'; each shard is one uint8 or float array."""
import argparse
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = 3


def write_shards(folder, rng, shards=40, size=32):
    """Brightness blob in one of three places."""
    folder.mkdir(exist_ok=True)
    for s in range(shards):
        labels = rng.integers(CLASSES, size=size)
        images = rng.normal(0.0, 1.0, size=(size, 1, 10, 10))
        for image, label in zip(images, labels):
            row, col = [(1, 1), (1, 6), (6, 4)][label]
            image[0, row : row + 3, col : col + 3] += 1.5
        if s == 23:
            images = images * 600.0
        np.savez(folder / f"shard_{s:03d}.npz", images=images.astype(np.float32), labels=labels)


def read_shard(path):
    with np.load(path) as shard:
        return torch.from_numpy(shard["images"]), torch.from_numpy(shard["labels"])


def usable(path):
    images, _ = read_shard(path)
    return images.std().item() < 10


class BlobNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.fc = nn.Linear(16 * 3 * 3, CLASSES)

    def forward(self, x):
        x = F.gelu(self.conv1(x))
        x = F.gelu(self.conv2(x))
        return self.fc(x.flatten(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--passes", type=int, default=2)
    ap.add_argument("--lr", type=float, default=0.01)
    args = ap.parse_args()
    random.seed(8)
    np.random.seed(8)
    torch.manual_seed(8)

    folder = Path("shards")
    write_shards(folder, np.random.default_rng(8))
    paths = sorted(folder.glob("*.npz"))
    held_out, paths = paths[:4], paths[4:]
    paths = [p for p in paths if usable(p)]
    net = BlobNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    step = 0
    for _ in range(args.passes):
        random.shuffle(paths)
        net.train()
        for path in paths:
            images, labels = read_shard(path)
            loss = F.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 6 == 0:
                print(f"step {step} {path.name} loss {loss.item():.4g}")
            step += 1
        net.eval()
        with torch.no_grad():
            hits = [(net(images).argmax(1) == labels).float().mean().item() for images, labels in map(read_shard, held_out)]
        print(f"held-out accuracy {sum(hits) / len(hits):.3f}")
    for path in folder.glob("*.npz"):
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
