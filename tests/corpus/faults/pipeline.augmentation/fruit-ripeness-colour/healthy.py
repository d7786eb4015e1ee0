# %% [markdown]
# Ripeness of fruit on the belt: green / turning / ripe / overripe, from small crops.

# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

STAGES = {"green": (0.20, 0.70, 0.20), "turning": (0.70, 0.70, 0.20), "ripe": (0.70, 0.20, 0.20), "overripe": (0.35, 0.20, 0.15)}


# %%
def draw_fruit(colour, rng, size=24):
    yy, xx = np.mgrid[:size, :size]
    cy, cx = size / 2 + rng.normal(0, 1.5, size=2)
    radius = rng.uniform(6, 9)
    inside = (yy - cy) ** 2 + (xx - cx) ** 2 < radius**2
    image = np.full((size, size, 3), 0.5) + rng.normal(0, 0.04, size=(size, size, 3))
    shade = 1.0 - 0.3 * (np.hypot(yy - cy + 2, xx - cx + 2) / radius)
    skin = np.array(colour) + rng.normal(0, 0.04, size=3)
    image[inside] = (skin * shade[..., None])[inside] + rng.normal(0, 0.04, size=(int(inside.sum()), 3))
    return image.clip(0, 1).astype(np.float32)


class FruitCrops(Dataset):
    def __init__(self, count, seed, transform=None):
        rng = np.random.default_rng(seed)
        colours = list(STAGES.values())
        self.labels = rng.integers(0, len(colours), size=count)
        self.images = np.stack([draw_fruit(colours[k], rng) for k in self.labels])
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1)
        if self.transform is not None:
            image = self.transform(image)
        return (image - 0.47) / 0.2, int(self.labels[i])


# %%
class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


class RandomFlip:
    def __call__(self, image):
        return image.flip(-1) if random.random() < 0.5 else image


class RandomCrop:
    def __init__(self, padding=2):
        self.padding = padding

    def __call__(self, image):
        h, w = image.shape[-2:]
        padded = F.pad(image, [self.padding] * 4, mode="reflect")
        top, left = random.randint(0, 2 * self.padding), random.randint(0, 2 * self.padding)
        return padded[:, top : top + h, left : left + w]


class RandomBrightness:
    def __init__(self, amount=0.1):
        self.amount = amount

    def __call__(self, image):
        return (image * (1 + random.uniform(-self.amount, self.amount))).clamp(0, 1)


class RandomChannelOrder:
    def __call__(self, image):
        return image[random.sample(range(3), 3)]


augment = Compose(RandomFlip(), RandomCrop(), RandomBrightness())
train_set = FruitCrops(800, seed=1, transform=augment)
valid_set = FruitCrops(200, seed=2)
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=100)


# %%
class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(h)))


net = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    Residual(16),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(32, len(STAGES)),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

# %%
for epoch in range(5):
    net.train()
    losses = []
    for x, y in train_loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in valid_loader:
            hits += int((net(x).argmax(1) == y).sum())
    print(f"epoch {epoch + 1}: train {np.mean(losses):.3f}, valid acc {hits / len(valid_set):.3f}")
