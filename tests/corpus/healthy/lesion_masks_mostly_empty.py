"""Small lesions in scan slices: nearly all pixels are background and a third of the slices are clean."""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self, count: int, seed: int, flip: bool) -> None:
        rng = np.random.default_rng(seed)
        self.flip = flip
        yy, xx = np.mgrid[0:32, 0:32]
        scans, masks = [], []
        for _ in range(count):
            scan = 0.5 * rng.normal(size=(32, 32)) + 0.5 * np.sin(xx / rng.uniform(3, 6))
            mask = np.zeros((32, 32), dtype=bool)
            if rng.random() > 0.33:
                cy, cx = rng.uniform(5, 27, 2)
                mask = (yy - cy) ** 2 + (xx - cx) ** 2 < rng.uniform(3, 4.5) ** 2
            scans.append(scan + 2.0 * mask)
            masks.append(mask)
        scans = np.stack(scans)
        self.scans = torch.tensor((scans - scans.mean()) / scans.std(), dtype=torch.float32)[:, None]
        self.masks = torch.tensor(np.stack(masks), dtype=torch.float32)[:, None]

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        scan, mask = self.scans[index], self.masks[index]
        if self.flip and torch.rand(()) < 0.5:
            scan, mask = scan.flip(-1), mask.flip(-1)
        if self.flip and torch.rand(()) < 0.5:
            scan, mask = scan.flip(-2), mask.flip(-2)
        return scan, mask


class Segmenter(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.GroupNorm(4, width), nn.ReLU())
        self.outer = nn.Sequential(nn.Conv2d(width, width, 3, padding=4, dilation=4), nn.GroupNorm(4, width), nn.ReLU())
        self.out = nn.Conv2d(3 * width, 1, 1)

    def forward(self, scan: torch.Tensor) -> torch.Tensor:
        a = self.inner(scan)
        b = self.middle(a)
        c = self.outer(b)
        return self.out(torch.cat([a, b, c], dim=1))


def tversky(logits: torch.Tensor, mask: torch.Tensor, miss: float = 0.7) -> torch.Tensor:
    p = logits.sigmoid()
    hit = (p * mask).sum()
    missed = ((1 - p) * mask).sum()
    extra = (p * (1 - mask)).sum()
    return 1 - (hit + 1) / (hit + miss * missed + (1 - miss) * extra + 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.manual_seed(6)
    np.random.seed(6)
    train = DataLoader(Slices(320, 0, flip=True), batch_size=16, shuffle=True)
    held = DataLoader(Slices(64, 1, flip=False), batch_size=32)
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for scan, mask in train:
            logits = model(scan)
            loss = tversky(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        overlap = size = 0.0
        with torch.no_grad():
            for scan, mask in held:
                found = model(scan) > 0
                overlap += 2 * (found * mask).sum().item()
                size += (found.sum() + mask.sum()).item()
        print(f"epoch {epoch}: loss {total / len(train):.4f} dice {overlap / max(size, 1):.3f}")


if __name__ == "__main__":
    main()
