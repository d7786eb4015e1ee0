"""Texture classification in float16 on the CPU, convolutional network with group norm."""
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def set_seed(value):
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


class Textures(Dataset):
    """Gratings of three wavelengths at random phase, with noise."""

    def __init__(self, n, size=12):
        y, x = np.mgrid[0:size, 0:size]
        self.labels = np.random.randint(0, 3, size=n)
        waves = np.array([3.0, 4.5, 7.0])[self.labels][:, None, None]
        phase = np.random.uniform(0, 2 * np.pi, size=(n, 1, 1))
        images = np.sin(2 * np.pi * (x + 0.5 * y) / waves + phase) + np.random.normal(0, 0.7, size=(n, size, size))
        self.images = (images / 0.99).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).unsqueeze(0), int(self.labels[i])


def conv_block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU())


set_seed(22)
train_loader = DataLoader(Textures(768), batch_size=32, shuffle=True)
test_loader = DataLoader(Textures(192), batch_size=96)
model = nn.Sequential(conv_block(1, 8), nn.MaxPool2d(2), conv_block(8, 16), nn.Flatten(), nn.Linear(16 * 36, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_factor=8.0, growth_interval=1)

for epoch in range(3):
    model.train()
    losses = []
    for images, labels in train_loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in test_loader:
            right += (model(images).argmax(1) == labels).sum().item()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f} accuracy {right / 192:.3f} scale {scaler.get_scale():g}")
