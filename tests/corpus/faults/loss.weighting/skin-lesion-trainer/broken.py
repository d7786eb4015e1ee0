"""Skin lesion triage: four diagnoses, most of the images are harmless moles."""
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NAMES = ["nevus", "keratosis", "carcinoma", "melanoma"]


@dataclass
class TrainConfig:
    frequencies: list = field(default_factory=lambda: [0.76, 0.13, 0.07, 0.04])
    image_size: int = 20
    batch_size: int = 48
    epochs: int = 5
    lr: float = 2e-3
    seed: int = 0


class LesionDataset(Dataset):
    def __init__(self, cfg, n, seed):
        rng = np.random.default_rng(seed)
        self.targets = rng.choice(4, size=n, p=cfg.frequencies)
        yy, xx = np.mgrid[0:cfg.image_size, 0:cfg.image_size] - cfg.image_size / 2
        images = rng.normal(0, 0.35, (n, 3, cfg.image_size, cfg.image_size))
        for i, t in enumerate(self.targets):
            radius = rng.uniform(4, 7)
            stretch = 1.0 if t in (0, 1) else rng.uniform(1.4, 1.8)
            blob = (xx**2 * stretch + yy**2 / stretch < radius**2).astype(float)
            images[i, 0] += blob * (1.0 if t in (0, 2) else 0.5)
            images[i, 2] += blob * (0.4 if t in (0, 2) else 1.0)
        self.images = ((images - images.mean((0, 2, 3), keepdims=True)) / images.std((0, 2, 3), keepdims=True)).astype(np.float32)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, idx):
        return torch.from_numpy(self.images[idx]), int(self.targets[idx])


def conv_block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2))


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 16), conv_block(16, 32))
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(32 * 25, 4)

    def forward(self, x):
        return self.classifier(self.dropout(self.features(x).flatten(1)))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed)
        np.random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        self.train_set = LesionDataset(cfg, 1500, seed=1)
        self.val_set = LesionDataset(cfg, 500, seed=2)
        self.train_loader = DataLoader(self.train_set, cfg.batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(self.val_set, 128)
        self.model = LesionNet()
        self.criterion = nn.CrossEntropyLoss(weight=self.class_weights())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def class_weights(self):
        counts = torch.bincount(torch.as_tensor(self.train_set.targets), minlength=len(NAMES)).float()
        weights = len(NAMES) * counts / counts.sum()
        return weights

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for images, targets in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(images), targets)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            recall = self.validate()
            shown = " ".join(f"{n}={r:.2f}" for n, r in zip(NAMES, recall))
            print(f"epoch {epoch + 1}: loss {total / len(self.train_loader):.4f} recall {shown}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        confusion = torch.zeros(4, 4)
        for images, targets in self.val_loader:
            for t, p in zip(targets, self.model(images).argmax(1)):
                confusion[t, p] += 1
        return (confusion.diag() / confusion.sum(1).clamp(min=1)).tolist()


if __name__ == "__main__":
    Trainer(TrainConfig()).fit()
