# DCGAN on 16x16 synthetic patches (bright soft squares). Spectral norm in the critic, batch norm in the generator.
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    latent: int = 16
    width: int = 16
    batch_size: int = 32
    epochs: int = 4
    num_images: int = 512
    lr: float = 5e-4


def make_patches(n):
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    cx, cy = torch.randint(4, 12, (2, n, 1, 1)).float()
    size = torch.empty(n, 1, 1).uniform_(2, 4)
    inside = torch.sigmoid(2 * (size - torch.maximum((xx - cx).abs(), (yy - cy).abs())))
    return (2 * inside - 1).unsqueeze(1)  # tanh range


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.05)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


def build(cfg):
    w = cfg.width
    netG = nn.Sequential(
        nn.ConvTranspose2d(cfg.latent, 2 * w, 4, 1, 0, bias=False),
        nn.BatchNorm2d(2 * w),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * w, w, 4, 2, 1, bias=False),
        nn.BatchNorm2d(w),
        nn.ReLU(True),
        nn.ConvTranspose2d(w, 1, 4, 2, 1),
        nn.Tanh(),
    )
    netG.apply(weights_init)
    netD = nn.Sequential(
        spectral_norm(nn.Conv2d(1, w, 4, 2, 1)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Conv2d(w, 2 * w, 4, 2, 1)),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * w, 1, 4, 1, 0),
        nn.Flatten(0),
    )
    return netG, netD


def train(cfg):
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(make_patches(cfg.num_images)), cfg.batch_size, shuffle=True, drop_last=True)
    netG, netD = build(cfg)
    optD = torch.optim.Adam(netD.parameters(), lr=cfg.lr, betas=(0.5, 0.999))
    optG = torch.optim.Adam(netG.parameters(), lr=cfg.lr, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(cfg.epochs):
        sumD = sumG = 0.0
        for (real,) in loader:
            ones, zeros = torch.ones(len(real)), torch.zeros(len(real))
            noise = torch.randn(len(real), cfg.latent, 1, 1)
            fake = netG(noise)

            optD.zero_grad(set_to_none=True)
            lossD = criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)
            lossD.backward()
            optD.step()

            optG.zero_grad(set_to_none=True)
            lossG = criterion(netD(fake), ones)
            lossG.backward()
            optG.step()
            sumD += lossD.item()
            sumG += lossG.item()
        print(f"[{epoch}] Loss_D {sumD / len(loader):.3f} Loss_G {sumG / len(loader):.3f} pixel mean {fake.mean().item():+.2f} (real {real.mean().item():+.2f})")


if __name__ == "__main__":
    train(Config())
