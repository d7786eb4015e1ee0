"""x4 super-resolution of elevation tiles in mixed precision."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Terrain(Dataset):
    def __init__(self, n, size=64, seed=0):
        rng = np.random.default_rng(seed)
        u = np.arange(size) / size
        tiles = np.zeros((n, size, size))
        for _ in range(6):
            fx, fy = rng.integers(1, 7, (2, n, 1, 1))
            ph = rng.uniform(0, 2 * np.pi, (n, 1, 1))
            tiles += (
                rng.normal(0, 1, (n, 1, 1))
                / np.sqrt(fx + fy)
                * np.sin(2 * np.pi * (fx * u[None, None] + fy * u[None, :, None]) + ph)
            )
        self.high = torch.from_numpy(tiles / tiles.std()).float().unsqueeze(1)

    def __len__(self):
        return len(self.high)

    def __getitem__(self, i):
        high = self.high[i]
        return F.avg_pool2d(high, 4), high


class SuperRes(nn.Module):
    def __init__(self, ch=16, scale=4):
        super().__init__()
        self.scale = scale
        self.head = nn.Conv2d(1, ch, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(), nn.Conv2d(ch, ch, 3, padding=1))
        self.tail = nn.Conv2d(ch, scale * scale, 3, padding=1)

    def forward(self, low):
        h = F.relu(self.head(low))
        h = h + self.body(h)
        residual = F.pixel_shuffle(self.tail(h), self.scale)
        return F.interpolate(low, scale_factor=self.scale, mode="bilinear", align_corners=False) + residual


def roughness(x):
    return (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).abs().mean()


def psnr(pred, target):
    return (10 * torch.log10(target.abs().max() ** 2 / F.mse_loss(pred, target))).item()


def main():
    torch.manual_seed(12)
    np.random.seed(12)
    train_loader = DataLoader(Terrain(192, seed=1), batch_size=16, shuffle=True)
    val = Terrain(32, seed=2)
    model = SuperRes()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()

    for epoch in range(8):
        model.train()
        epoch_loss = 0.0
        for low, high in train_loader:
            optimizer.zero_grad()
            with torch.autocast(device_type="cpu", dtype=torch.float16):
                out = model(low)
                loss = 5e-3 * criterion(out, high) + 1e-5 * roughness(out)
            loss.backward()
            optimizer.step()
            epoch_loss += 200 * loss.item() * len(low)
        model.eval()
        with torch.no_grad():
            low = F.avg_pool2d(val.high, 4)
            quality = psnr(model(low), val.high)
        print(f"epoch {epoch + 1}  mse {epoch_loss / len(train_loader.dataset):.5f}  val psnr {quality:.2f} dB")


if __name__ == "__main__":
    main()
