"""Train a small U-Net to segment cracks in concrete patches."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class CrackPatches(Dataset):
    def __init__(self, size, seed, side=32):
        self.size, self.seed, self.side = size, seed, side

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, index))
        image = rng.normal(0.0, 0.5, (self.side, self.side)).astype(np.float32)
        mask = np.zeros((self.side, self.side), dtype=np.float32)
        row = rng.integers(6, self.side - 6)
        for col in range(self.side):
            row = int(np.clip(row + rng.integers(-1, 2), 1, self.side - 2))
            mask[row - 1 : row + 2, col] = 1.0
        image -= 1.4 * mask
        blob_r, blob_c = rng.integers(4, self.side - 4, 2)
        image[blob_r - 3 : blob_r + 3, blob_c - 3 : blob_c + 3] -= 0.7
        image = (image - image.mean()) / (image.std() + 1e-6)
        return torch.from_numpy(image)[None], torch.from_numpy(mask)[None]


def conv_block(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
        nn.GroupNorm(4, c_out),
        nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
        nn.GroupNorm(4, c_out),
        nn.ReLU(inplace=True),
    )


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stages = nn.ModuleList([conv_block(1, width), conv_block(width, 2 * width), conv_block(2 * width, 4 * width)])
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        skips = []
        for i, stage in enumerate(self.stages):
            x = stage(x if i == 0 else self.pool(x))
            skips.append(x)
        return skips


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.block1 = conv_block(4 * width, 2 * width)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.block2 = conv_block(2 * width, width)

    def forward(self, skips):
        x = self.block1(torch.cat([self.up1(skips[2]), skips[1]], dim=1))
        return self.block2(torch.cat([self.up2(x), skips[0]], dim=1))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encoder = Encoder(width)
        self.decoder = Decoder(width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        return self.head(self.decoder(self.encoder(x)))


def dice(logits, target):
    pred = (logits > 0).float()
    return (2 * (pred * target).sum() / (pred.sum() + target.sum() + 1e-6)).item()


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--freeze-encoder", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_loader = DataLoader(CrackPatches(240, seed=1), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(CrackPatches(40, seed=2), batch_size=20)
    model = UNet()
    if args.freeze_encoder:
        for param in model.encoder.parameters():
            param.requires_grad = False
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            scores = [dice(model(image), mask) for image, mask in val_loader]
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} dice {sum(scores) / len(scores):.3f}")


if __name__ == "__main__":
    main()
