"""Two-stage training: pretrain a convolutional encoder by reconstruction, then fine-tune it to regress leaf area."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    seed: int = 12
    image_size: int = 16
    pretrain_epochs: int = 2
    finetune_epochs: int = 6
    unfreeze_at: int = 1
    batch_size: int = 32
    lr: float = 2e-3


def make_leaves(count, size, seed):
    rng = np.random.default_rng(seed)
    grid = np.linspace(-1, 1, size)
    yy, xx = np.meshgrid(grid, grid, indexing="ij")
    images, areas = [], []
    for _ in range(count):
        angle = rng.uniform(0, np.pi)
        long, short = rng.uniform(0.4, 0.95), rng.uniform(0.15, 0.5)
        u = xx * np.cos(angle) + yy * np.sin(angle)
        v = -xx * np.sin(angle) + yy * np.cos(angle)
        leaf = (u / long) ** 2 + (v / short) ** 2 < 1
        images.append(leaf + rng.normal(0, 0.2, leaf.shape))
        areas.append(leaf.mean())
    images = np.stack(images).astype(np.float32)
    areas = np.array(areas, dtype=np.float32)
    images = (images - images.mean()) / images.std()
    areas = (areas - areas.mean()) / areas.std()
    return torch.from_numpy(images).unsqueeze(1), torch.from_numpy(areas)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)

    def forward(self, x):
        return torch.relu(self.conv2(torch.relu(self.conv1(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def forward(self, z):
        return self.up2(torch.relu(self.up1(z)))


class AreaRegressor(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(1)


def pretrain(encoder, images, cfg):
    decoder = Decoder()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=cfg.lr)
    loader = DataLoader(TensorDataset(images), batch_size=cfg.batch_size, shuffle=True)
    for epoch in range(cfg.pretrain_epochs):
        for (batch,) in loader:
            loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"pretrain epoch {epoch}: reconstruction {loss.item():.4f}")


def set_trainable(module, flag):
    for param in module.parameters():
        param.requires_grad = flag


def finetune(model, train_set, valid_set, cfg):
    loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.MSELoss()
    for epoch in range(cfg.finetune_epochs):
        if epoch == cfg.unfreeze_at:
            set_trainable(model.encoder, True)
        model.train()
        for images, areas in loader:
            loss = criterion(model(images), areas)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            valid = criterion(model(valid_set.tensors[0]), valid_set.tensors[1]).item()
        print(f"finetune epoch {epoch}: train {loss.item():.4f}  valid {valid:.4f}")


def main():
    cfg = Settings()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)

    images, areas = make_leaves(640, cfg.image_size, cfg.seed)
    train_set = TensorDataset(images[:512], areas[:512])
    valid_set = TensorDataset(images[512:], areas[512:])

    encoder = Encoder()
    pretrain(encoder, images[:512], cfg)
    encoder.requires_grad_(False)
    finetune(AreaRegressor(encoder), train_set, valid_set, cfg)


if __name__ == "__main__":
    main()
