"""Segments bright nodules on noisy slices with a two-level U-Net; the Dice score is checked every few iterations."""

import random
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 24
EPOCHS = 5
EVAL_EVERY = 10


class Slices(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        rows, cols = np.mgrid[:SIZE, :SIZE]
        self.images, self.masks = [], []
        for _ in range(count):
            mask = np.zeros((SIZE, SIZE), dtype=bool)
            for _ in range(rng.integers(1, 4)):
                cy, cx = rng.uniform(4, SIZE - 4, size=2)
                mask |= (rows - cy) ** 2 + (cols - cx) ** 2 < rng.uniform(2.5, 5.0) ** 2
            image = 0.7 * rng.normal(size=mask.shape) + 1.4 * mask
            self.images.append(((image - image.mean()) / image.std()).astype(np.float32))
            self.masks.append(mask.astype(np.float32))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i])[None], torch.from_numpy(self.masks[i])[None]


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = double_conv(1, width)
        self.bottom = double_conv(width, 2 * width)
        self.drop = nn.Dropout2d(0.1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.drop(self.bottom(F.max_pool2d(skip, 2)))
        return self.head(self.merge(torch.cat([skip, self.up(deep)], dim=1)))


@torch.no_grad()
def mean_dice(net, loader, max_batches=2):
    net.eval()
    scores = []
    for image, mask in islice(loader, max_batches):
        guess = (net(image) > 0).float()
        overlap = 2 * (guess * mask).sum(dim=(1, 2, 3))
        scores.append(overlap / (guess.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))))
    net.train()
    return torch.cat(scores).mean().item()


def main():
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    train_loader = DataLoader(Slices(320, 10), batch_size=16, shuffle=True, drop_last=True)
    val_loader = DataLoader(Slices(64, 11), batch_size=32)
    net = UNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)

    iteration = 0
    for epoch in range(EPOCHS):
        net.train()
        for image, mask in train_loader:
            logits = net(image)
            loss = F.binary_cross_entropy_with_logits(logits, mask)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            iteration += 1
            if iteration % EVAL_EVERY == 0:
                dice = mean_dice(net, val_loader)
                print(f"epoch {epoch} iteration {iteration} loss {loss.item():.4f} dice {dice:.3f}")


if __name__ == "__main__":
    main()
