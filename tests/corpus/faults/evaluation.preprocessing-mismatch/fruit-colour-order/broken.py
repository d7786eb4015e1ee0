"""Ripe or unripe fruit from small colour photographs; the reader of the test folder is another library."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MEAN, STD = np.array([0.55, 0.40, 0.22]), np.array([0.17, 0.17, 0.09])


def photograph(rng, ripe):
    base = np.array([0.70, 0.28, 0.20]) if ripe else np.array([0.40, 0.55, 0.24])
    picture = base + rng.normal(0, 0.06, 3) + rng.normal(0, 0.08, (10, 10, 3))
    return (np.clip(picture, 0, 1) * 255).astype(np.uint8)


def read_rgb(raw):
    return raw / 255.0


def read_bgr(raw):
    return raw[:, :, ::-1] / 255.0


class Fruit(Dataset):
    def __init__(self, count, seed, reader):
        rng = np.random.default_rng(seed)
        self.ripe = rng.integers(0, 2, count)
        self.raw = [photograph(rng, ripe) for ripe in self.ripe]
        self.reader = reader

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, i):
        picture = (self.reader(self.raw[i]) - MEAN) / STD
        return torch.tensor(picture.transpose(2, 0, 1).copy(), dtype=torch.float32), int(self.ripe[i])


np.random.seed(6)
torch.manual_seed(6)
train_loader = DataLoader(Fruit(960, 1, read_rgb), batch_size=32, shuffle=True)
test_loader = DataLoader(Fruit(240, 2, read_bgr), batch_size=80)
model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(128, 32), nn.LeakyReLU(0.1), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(3):
    model.train()
    for picture, ripe in train_loader:
        loss = nn.functional.cross_entropy(model(picture), ripe)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = total = 0
    with torch.no_grad():
        for picture, ripe in test_loader:
            right += (model(picture).argmax(1) == ripe).sum().item()
            total += len(ripe)
    print(f"epoch {epoch} loss {loss.item():.4f} test accuracy {right / total:.3f}")
