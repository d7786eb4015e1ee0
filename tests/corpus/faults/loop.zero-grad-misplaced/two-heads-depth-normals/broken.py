import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def render(n, size, rng):
    """Smooth height fields seen from above; targets are the height and the slope in x and y."""
    grid = np.linspace(-1, 1, size)
    yy, xx = np.meshgrid(grid, grid, indexing="ij")
    a, b, c = (rng.normal(0, 1, (n, 1, 1)) for _ in range(3))
    height = a * xx + b * yy + c * xx * yy
    slope = np.stack([a + c * yy + 0 * xx, b + c * xx + 0 * yy], axis=1)
    shade = 0.6 * height[:, None] + 0.3 * slope[:, :1] - 0.3 * slope[:, 1:] + 0.1 * rng.standard_normal((n, 1, size, size))
    ramp = np.broadcast_to(np.stack([xx, yy]), (n, 2, size, size))
    x = np.concatenate([shade / shade.std(), ramp / ramp.std()], axis=1)
    return [torch.tensor(v, dtype=torch.float32) for v in (x, height[:, None] / height.std(), slope / slope.std())]


class SceneNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 5, padding=2), nn.ReLU(), nn.Conv2d(width, width, 5, padding=2), nn.ReLU()
        )
        self.depth = nn.Conv2d(width, 1, 1)
        self.slope = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        z = self.encoder(x)
        return self.depth(z), self.slope(z)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


def main():
    args = parse()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train = DataLoader(TensorDataset(*render(600, 12, rng)), batch_size=args.batch, shuffle=True)
    held = render(120, 12, rng)

    net = SceneNet(args.width)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        net.train()
        sums = np.zeros(2)
        for x, depth, slope in train:
            opt.zero_grad()
            z_depth, z_slope = net(x)
            depth_loss = F.smooth_l1_loss(z_depth, depth)
            depth_loss.backward(retain_graph=True)
            opt.zero_grad()
            slope_loss = F.mse_loss(z_slope, slope)
            slope_loss.backward()
            opt.step()
            sums += depth_loss.item(), slope_loss.item()
        net.eval()
        with torch.no_grad():
            z_depth, z_slope = net(held[0])
            val = F.smooth_l1_loss(z_depth, held[1]).item(), F.mse_loss(z_slope, held[2]).item()
        print(f"[{epoch}] depth {sums[0] / len(train):.4f} slope {sums[1] / len(train):.4f}  val {val[0]:.4f} {val[1]:.4f}")


if __name__ == "__main__":
    main()
