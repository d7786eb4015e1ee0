"""Tag photos with any of six attributes; multi-label head, F1 on held-out photos."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(515)
ATTRIBUTES, FEATURES = 6, 20
mixing = torch.randn(FEATURES, ATTRIBUTES) / FEATURES**0.5


def photos(n):
    features = torch.randn(n, FEATURES)
    score = 2.5 * features @ mixing + 0.5 * torch.randn(n, ATTRIBUTES)
    return TensorDataset(features, (score > 0.4).float())


def f1(predicted, target):
    hit = (predicted & target).sum().item()
    return 2 * hit / max(1, predicted.sum().item() + target.sum().item())


train_part, val_part = random_split(photos(1300), [1000, 300])
train_loader = DataLoader(train_part, batch_size=40, shuffle=True)
val_loader = DataLoader(val_part, batch_size=100)
model = nn.Sequential(nn.Linear(FEATURES, 48), nn.ReLU(), nn.Linear(48, ATTRIBUTES))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(4):
    model.train()
    total = 0.0
    for features, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), target)
        loss.backward()
        optimizer.step()
        total += loss.item()

    model.eval()
    predictions, targets = [], []
    with torch.no_grad():
        for features, target in val_loader:
            output = model(features)
            predictions.append(torch.sigmoid(output) > 0.5)
            targets.append(target.bool())
    score = f1(torch.cat(predictions), torch.cat(targets))
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} validation F1 {score:.4f}")
