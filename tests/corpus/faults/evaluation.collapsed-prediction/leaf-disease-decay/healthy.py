"""Leaf disease from small colour crops: healthy, rust, mildew or blight."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NAMES = ["healthy", "rust", "mildew", "blight"]


@dataclass
class TrainConfig:
    width: int = 12
    lr: float = 0.012
    weight_decay: float = 1e-4
    epochs: int = 7
    batch_size: int = 32
    seed: int = 2


class Leaves(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[0:16, 0:16]
        self.label = rng.choice(4, n, p=[0.34, 0.24, 0.22, 0.2])
        image = np.zeros((n, 3, 16, 16), dtype=np.float32)
        image[:, 1] = 0.6
        for i, kind in enumerate(self.label):
            for _ in range(3 if kind else 0):
                cy, cx = rng.uniform(3, 13, 2)
                spot = ((yy - cy) ** 2 + (xx - cx) ** 2) < rng.uniform(3, 8)
                image[i, 0] += (0.7 if kind == 1 else 0.1 if kind == 3 else 0.5) * spot
                image[i, 1] -= (0.2 if kind != 2 else -0.2) * spot
                image[i, 2] += (0.6 if kind == 2 else 0.0) * spot
        image += 0.12 * rng.standard_normal(image.shape)
        mean = np.array([0.08, 0.57, 0.03]).reshape(3, 1, 1)
        std = np.array([0.27, 0.19, 0.21]).reshape(3, 1, 1)
        self.image = torch.tensor((image - mean) / std, dtype=torch.float32)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.image[i], int(self.label[i])


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.conv2(torch.relu(self.conv1(x))))


class LeafNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.block1 = ResidualBlock(width)
        self.pool = nn.MaxPool2d(2)
        self.block2 = ResidualBlock(width)
        self.head = nn.Linear(width, len(NAMES))

    def forward(self, x):
        x = self.pool(self.block1(torch.relu(self.stem(x))))
        return self.head(self.block2(x).mean(dim=(2, 3)))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        np.random.seed(cfg.seed)
        self.train_loader = DataLoader(Leaves(640, 1), batch_size=cfg.batch_size, shuffle=True)
        self.val_loader = DataLoader(Leaves(160, 2), batch_size=cfg.batch_size)
        self.model = LeafNet(cfg.width)
        weights = [p for n, p in self.model.named_parameters() if n.endswith("weight")]
        biases = [p for n, p in self.model.named_parameters() if n.endswith("bias")]
        groups = [{"params": weights, "weight_decay": cfg.weight_decay}, {"params": biases, "weight_decay": 0.0}]
        self.optimizer = torch.optim.SGD(groups, lr=cfg.lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for image, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(image), label)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(label)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        table = torch.zeros(4, 4, dtype=torch.long)
        for image, label in self.val_loader:
            for truth, guess in zip(label, self.model(image).argmax(1)):
                table[truth, guess] += 1
        return table

    def fit(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            table = self.validate()
            accuracy = table.diagonal().sum().item() / table.sum().item()
            print(f"{epoch=} {loss=:.4f} {accuracy=:.3f} predicted {dict(zip(NAMES, table.sum(0).tolist()))}")


if __name__ == "__main__":
    Trainer(TrainConfig()).fit()
