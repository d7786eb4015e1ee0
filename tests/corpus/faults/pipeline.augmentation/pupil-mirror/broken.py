"""Find the pupil: regress its (x, y) position in the eye crop, coordinates as fractions of width and height."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIZE = 24


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class EyeCrops(Dataset):
    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        grid_y, grid_x = np.mgrid[:SIZE, :SIZE]
        self.points = rng.uniform(0.15, 0.85, (n, 2)).astype(np.float32)
        px, py = self.points[:, 0, None, None] * (SIZE - 1), self.points[:, 1, None, None] * (SIZE - 1)
        dist = (grid_x - px) ** 2 + (grid_y - py) ** 2
        self.images = (rng.normal(0, 0.4, (n, SIZE, SIZE)) + 2.5 * np.exp(-dist / 8.0)).astype(np.float32)
        self.images -= self.images.mean()
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = torch.from_numpy(self.images[idx])[None]
        point = torch.from_numpy(self.points[idx])
        if self.transform is not None:
            image, point = self.transform(image, point)
        return image, point


class TrainTransform:
    """Mirror half of the crops and vary the lighting."""

    def __init__(self, p_flip=0.5, brightness=0.2):
        self.p_flip = p_flip
        self.brightness = brightness

    def __call__(self, image, point):
        if random.random() < self.p_flip:
            image = torch.flip(image, dims=[-1])
        image = image + random.uniform(-self.brightness, self.brightness)
        return image, point


class PupilNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
        )
        self.regress = nn.Sequential(nn.Flatten(), nn.Linear(24 * 36, 64), nn.LeakyReLU(0.1), nn.Linear(64, 2))

    def forward(self, x):
        return self.regress(self.features(x))


def main():
    set_seed(12)
    train = DataLoader(EyeCrops(900, 1, TrainTransform()), batch_size=30, shuffle=True)
    val = DataLoader(EyeCrops(150, 2), batch_size=50)
    net = PupilNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.4)
    mse = nn.MSELoss()
    for epoch in range(5):
        net.train()
        total = 0.0
        for image, point in train:
            optimizer.zero_grad()
            loss = mse(net(image), point)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        net.eval()
        with torch.no_grad():
            errors = [(net(image) - point).norm(dim=1) for image, point in val]
        pixels = torch.cat(errors).mean().item() * (SIZE - 1)
        print(f"epoch {epoch} mse {total / len(train):.5f} val error {pixels:.2f} px")


if __name__ == "__main__":
    main()
