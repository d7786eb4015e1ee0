"""Spectrogram-like patches, small CNN; the best epoch on the validation loader is kept."""
import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

np.random.seed(9)
torch.manual_seed(9)


def patches(n):
    label = np.random.randint(4, size=n)
    x = np.random.normal(size=(n, 1, 8, 16)).astype(np.float32)
    for i, k in enumerate(label):
        start = np.random.randint(0, 8)
        rise = np.arange(8) if k % 2 else np.zeros(8, dtype=int)
        rows = (np.random.randint(0, 8) + rise) % 8
        x[i, 0, rows, start + np.arange(8)] += 2.2 if k < 2 else -2.2
    return TensorDataset(torch.from_numpy(x / x.std()), torch.from_numpy(label))


data = patches(1350)
order = np.random.permutation(len(data))
train_set, val_set = Subset(data, order[:1080].tolist()), Subset(data, order[1080:].tolist())
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=90)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d((2, 4)),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(16 * 8, 4),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
criterion = nn.CrossEntropyLoss()
best, best_state = 0.0, None
for epoch in range(4):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    right = count = 0
    with torch.no_grad():
        for x, y in val_loader:
            right += (model(x).argmax(1) == y).sum().item()
            count += len(y)
    if right / count > best:
        best, best_state = right / count, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} validation accuracy {right / count:.3f} best {best:.3f}")
model.load_state_dict(best_state)
