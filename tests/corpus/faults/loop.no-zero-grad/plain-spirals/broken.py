"""Two interleaved spirals plus distractor inputs, MLP, SGD with momentum."""
import math

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(42)
torch.manual_seed(42)

POINTS = 1600
NOISE_DIMS = 2


def spirals(n):
    cls = np.random.randint(0, 2, size=n)
    radius = np.sqrt(np.random.rand(n))
    angle = radius * 1.2 * math.pi + cls * math.pi
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    xy += np.random.normal(scale=0.03, size=xy.shape)
    junk = np.random.normal(size=(n, NOISE_DIMS)) * 0.5
    return np.concatenate([xy, junk], axis=1).astype(np.float32), cls.astype(np.int64)


X, Y = spirals(POINTS)
cut = int(0.8 * POINTS)
mean, std = X[:cut].mean(0), X[:cut].std(0)
X = (X - mean) / std
train_ds = TensorDataset(torch.from_numpy(X[:cut]), torch.from_numpy(Y[:cut]))
valid_ds = TensorDataset(torch.from_numpy(X[cut:]), torch.from_numpy(Y[cut:]))
train_dl = DataLoader(train_ds, batch_size=40, shuffle=True)
valid_dl = DataLoader(valid_ds, batch_size=80, shuffle=False)

model = nn.Sequential(
    nn.Linear(2 + NOISE_DIMS, 64),
    nn.Tanh(),
    nn.Linear(64, 64),
    nn.Tanh(),
    nn.Linear(64, 2),
)
loss_func = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)


def evaluate():
    model.eval()
    losses, nums, hits = [], [], 0
    with torch.no_grad():
        for xb, yb in valid_dl:
            pred = model(xb)
            losses.append(loss_func(pred, yb).item())
            nums.append(len(xb))
            hits += (pred.argmax(dim=1) == yb).sum().item()
    return np.average(losses, weights=nums), hits / sum(nums)


for epoch in range(3):
    model.train()
    epoch_losses = []
    for xb, yb in train_dl:
        pred = model(xb)
        loss = loss_func(pred, yb)
        loss.backward()
        opt.step()
        epoch_losses.append(loss.item())
    val_loss, val_acc = evaluate()
    print(
        f"epoch {epoch}: first {epoch_losses[0]:.3f} mean {np.mean(epoch_losses):.3f} "
        f"last {epoch_losses[-1]:.3f} | val {val_loss:.3f} acc {val_acc:.3f}"
    )
