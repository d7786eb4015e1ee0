"""Retinal vessel segmentation with a two-level U-Net, mixed precision."""
import argparse
import random
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Vessels(Dataset):
    """Thin random walks (vessels) on a noisy background."""

    def __init__(self, n, size, seed):
        rng = np.random.default_rng(seed)
        self.masks = np.zeros((n, 1, size, size), np.float32)
        for mask in self.masks:
            for _ in range(3):
                y, x = rng.integers(0, size, 2)
                angle = rng.uniform(0, 2 * np.pi)
                for _ in range(size):
                    mask[0, int(y) % size, int(x) % size] = 1.0
                    angle += rng.normal(0, 0.2)
                    y, x = y + np.sin(angle), x + np.cos(angle)
        self.images = (rng.normal(0, 0.5, self.masks.shape) + 2.0 * self.masks).astype(np.float32)
        self.images = (self.images - self.images.mean()) / self.images.std()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]), torch.from_numpy(self.masks[i])


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1), nn.GroupNorm(4, c_out), nn.SiLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1), nn.GroupNorm(4, c_out), nn.SiLU(),
    )


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down1 = double_conv(1, c)
        self.down2 = double_conv(c, 2 * c)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.merge = double_conv(2 * c, c)
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(F.max_pool2d(skip, 2))
        return self.head(self.merge(torch.cat([skip, self.up(deep)], dim=1)))


def dice(logits, mask):
    predicted = (logits > 0).float()
    return (2 * (predicted * mask).sum() / (predicted.sum() + mask.sum() + 1e-6)).item()


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--precision", choices=["fp32", "fp16", "bf16"], default="fp16")
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def main():
    args = parse_args()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    train = DataLoader(Vessels(128, args.size, 1), args.batch, shuffle=True)
    valid = DataLoader(Vessels(16, args.size, 2), args.batch)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[args.precision]
    amp = nullcontext if dtype is None else (lambda: torch.autocast("cpu", dtype=dtype))
    scaler = torch.amp.GradScaler("cpu", enabled=args.precision == "bf16")

    for epoch in range(args.epochs):
        model.train()
        losses = []
        for image, mask in train:
            optimizer.zero_grad(set_to_none=True)
            with amp():
                logits = model(image)
                loss = F.binary_cross_entropy_with_logits(logits.float(), mask)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad(), amp():
            score = np.mean([dice(model(image), mask) for image, mask in valid])
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, dice {score:.3f}")


if __name__ == "__main__":
    main()
