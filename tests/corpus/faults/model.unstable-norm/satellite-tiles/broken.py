"""Land cover from small multispectral tiles. Tiles outside the swath are filled with zeros by the sensor."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ChannelNorm(nn.Module):
    """Layer norm over the channel axis of an NCHW tensor (as in ConvNeXt)."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(dim=1, keepdim=True)
        var = (x - mu).pow(2).mean(dim=1, keepdim=True)
        x = (x - mu) / torch.sqrt(var)
        return x * self.gamma[None, :, None, None] + self.beta[None, :, None, None]


class Stage(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.norm = ChannelNorm(cout)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class TileNet(nn.Module):
    def __init__(self, bands=5, classes=4):
        super().__init__()
        self.stages = nn.ModuleList([Stage(bands, 24, 1), Stage(24, 32, 2), Stage(32, 48, 2)])
        self.fc = nn.Linear(48, classes)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.fc(x.mean((2, 3)))


def load_tiles(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    signature = np.random.default_rng(77).normal(size=(4, 5))
    tiles = signature[labels][:, :, None, None] * 0.6 + rng.normal(size=(n, 5, 12, 12))
    stripes = np.sin(np.arange(12) * 1.3)[None, None, :, None] * (labels % 2)[:, None, None, None]
    tiles = tiles + stripes
    tiles = (tiles - tiles.mean((0, 2, 3), keepdims=True)) / tiles.std((0, 2, 3), keepdims=True)
    # swath edge: the last rows of some tiles carry no measurement
    for i in rng.choice(n, size=max(1, n // 100), replace=False):
        tiles[i, :, 4:, :] = 0.0
    return torch.tensor(tiles, dtype=torch.float32), torch.tensor(labels)


def main():
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    train = DataLoader(TensorDataset(*load_tiles(600, 1)), batch_size=24, shuffle=True)
    xv, yv = load_tiles(150, 2)
    net = TileNet()
    decay = [p for p in net.parameters() if p.ndim > 1]
    rest = [p for p in net.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.02}, {"params": rest, "weight_decay": 0.0}], lr=2e-3
    )
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(4):
        net.train()
        for step, (x, y) in enumerate(train):
            opt.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        net.eval()
        with torch.no_grad():
            acc = (net(xv).argmax(1) == yv).float().mean()
        print(f"epoch {epoch} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
