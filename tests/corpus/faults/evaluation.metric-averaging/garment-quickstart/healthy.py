"""Train a small MLP to recognise garments on 16x16 grey images."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["shirt", "trousers", "dress", "bag", "boot"]
device = "cuda" if torch.cuda.is_available() else "cpu"

random.seed(42)
np.random.seed(42)
torch.manual_seed(42)


class Garments(Dataset):
    """Silhouettes with a random offset and pixel noise; the catalogue's archive photos at the end are noisier."""

    def __init__(self, n, seed, archive=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(CLASSES), n)
        images = np.zeros((n, 16, 16), dtype=np.float32)
        for i, label in enumerate(self.labels):
            dy, dx = rng.integers(-1, 2, 2)
            canvas = np.zeros((16, 16), dtype=np.float32)
            if label == 0:
                canvas[4:13, 5:11] = 1
                canvas[4:6, 2:14] = 1
            elif label == 1:
                canvas[3:14, 4:7] = 1
                canvas[3:14, 9:12] = 1
            elif label == 2:
                for row in range(3, 14):
                    half = 1 + (row - 3) // 3
                    canvas[row, 8 - half : 8 + half] = 1
            elif label == 3:
                canvas[7:14, 3:13] = 1
                canvas[4, 6:10] = 1
            else:
                canvas[3:13, 5:8] = 1
                canvas[10:13, 5:13] = 1
            noise = 1.6 if i >= n - archive else 0.45
            images[i] = np.roll(canvas, (dy, dx), (0, 1)) + noise * rng.standard_normal((16, 16))
        self.images = torch.from_numpy((images - 0.25) / 0.6).unsqueeze(1)
        self.labels = torch.from_numpy(self.labels).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return self.images[idx], self.labels[idx]


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(16 * 16, 96),
            nn.ReLU(),
            nn.Linear(96, 96),
            nn.ReLU(),
            nn.Linear(96, len(CLASSES)),
        )

    def forward(self, x):
        return self.linear_relu_stack(self.flatten(x))


def train_loop(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device), y.to(device)
        pred = model(X)
        loss = loss_fn(pred, y)

        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

        if batch % 10 == 0:
            print(f"loss: {loss.item():>7f}  [{batch * len(X):>5d}/{size:>5d}]")


def test_loop(dataloader, model, loss_fn):
    size = len(dataloader.dataset)
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += loss_fn(pred, y).item() * len(X)
            correct += (pred.argmax(1) == y).float().sum().item()
    test_loss /= size
    correct /= size
    print(f"Test: accuracy {100 * correct:>0.1f}%, avg loss {test_loss:>8f}\n")
    return correct


training_data = Garments(1500, seed=1)
test_data = Garments(396, seed=2, archive=12)
train_dataloader = DataLoader(training_data, batch_size=64, shuffle=True)
test_dataloader = DataLoader(test_data, batch_size=64)

model = NeuralNetwork().to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

best = 0.0
for t in range(5):
    print(f"Epoch {t + 1}\n-------------------------------")
    train_loop(train_dataloader, model, loss_fn, optimizer)
    best = max(best, test_loop(test_dataloader, model, loss_fn))
print(f"Done! best accuracy {100 * best:.1f}%")
