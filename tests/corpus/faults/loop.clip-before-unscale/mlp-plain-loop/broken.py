"""Mixed-precision training of an MLP on two-dimensional spirals lifted to 16 features."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)

CLASSES = 3


def spirals(per_class):
    xs, ys = [], []
    for c in range(CLASSES):
        r = torch.linspace(0.2, 1.0, per_class)
        angle = 3.5 * r + c * 2 * math.pi / CLASSES + 0.12 * torch.randn(per_class)
        xs.append(torch.stack([r * angle.cos(), r * angle.sin()], dim=1))
        ys.append(torch.full((per_class,), c))
    return torch.cat(xs) @ torch.randn(2, 16), torch.cat(ys)


features, labels = spirals(400)
order = torch.randperm(len(features))
train_idx, test_idx = order[:1000], order[1000:]
mean, std = features[train_idx].mean(0), features[train_idx].std(0)
features = (features - mean) / std
train_set = TensorDataset(features[train_idx], labels[train_idx])
test_set = TensorDataset(features[test_idx], labels[test_idx])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
test_loader = DataLoader(test_set, batch_size=200)

model = nn.Sequential(
    nn.Linear(16, 64),
    nn.GELU(),
    nn.Linear(64, 64),
    nn.GELU(),
    nn.Linear(64, CLASSES),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**13)

for epoch in range(5):
    model.train()
    epoch_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        epoch_loss += loss.item() * len(x)

    model.eval()
    correct = 0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    accuracy = correct / len(test_set)
    print(f"epoch {epoch}  loss {epoch_loss / len(train_set):.4f}  acc {accuracy:.3f}  scale {scaler.get_scale():.0f}")
