"""Recognise the orientation of bars in 12x12 images; micro-batches of 12, updates every five of them."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(3)
torch.manual_seed(3)

SIDE, ANGLES = 12, 4


def bars(n):
    images = np.random.normal(0, 1.0, size=(n, SIDE, SIDE)).astype(np.float32)
    labels = np.random.randint(ANGLES, size=n)
    for image, label in zip(images, labels):
        at = np.random.randint(3, SIDE - 3)
        for k in range(SIDE):
            row, col = [(at, k), (k, at), (k, k), (k, SIDE - 1 - k)][label]
            image[row, col] += 1.8
    images = (images - images.mean()) / images.std()
    return TensorDataset(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels))


class BarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()
        )
        self.classifier = nn.Linear(16 * 6 * 6, ANGLES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


ACCUM = 5
train_loader = DataLoader(bars(768), batch_size=12, shuffle=True)
val_loader = DataLoader(bars(200), batch_size=100)
model = BarNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
optimizer.zero_grad()

for epoch in range(4):
    model.train()
    n_batches = len(train_loader)
    losses, updates = [], 0
    for i, (image, label) in enumerate(train_loader):
        in_group = min(ACCUM, n_batches - i // ACCUM * ACCUM)
        loss = criterion(model(image), label)
        (loss / in_group).backward()
        losses.append(loss.item())
        if (i + 1) % ACCUM == 0 or i + 1 == n_batches:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    model.eval()
    correct = 0
    with torch.no_grad():
        for image, label in val_loader:
            correct += (model(image).argmax(dim=1) == label).sum().item()
    print(f"epoch {epoch} updates {updates} loss {np.mean(losses):.4f} val acc {correct / 200:.3f}")
