import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


def draw(n):
    """8-bit greyscale pictures of bars at one of four angles."""
    images = np.random.randint(0, 60, (n, 1, 16, 16)).astype(np.uint8)
    labels = np.random.randint(0, 4, n)
    for i, angle in enumerate(labels):
        offset = np.random.randint(4, 12)
        for k in range(16):
            if angle == 0:
                images[i, 0, offset, k] = 230
            elif angle == 1:
                images[i, 0, k, offset] = 230
            elif angle == 2:
                images[i, 0, k, (k + offset) % 16] = 230
            else:
                images[i, 0, 15 - k, (k + offset) % 16] = 230
    return images, labels


images, labels = draw(2000)
x = torch.tensor(images, dtype=torch.float32)
y = torch.tensor(labels)
loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
holdout = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=200)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(2):
    model.train()
    for step, (image, label) in enumerate(loader):
        loss = loss_fn(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        hits = sum((model(image).argmax(1) == label).sum().item() for image, label in holdout)
    print(f"holdout accuracy {hits / 400:.3f}")
