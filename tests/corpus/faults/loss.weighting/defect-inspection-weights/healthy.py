"""Defects on a production line: three classes of unequal frequency, class weights in the loss."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(62)
np.random.seed(62)
torch.manual_seed(62)

NAMES = ["fine", "scratch", "dent"]
SHARES = [0.8, 0.12, 0.08]


def parts(n):
    kind = rng.choice(3, size=n, p=SHARES)
    centres = np.array([[0, 0, 0, 0, 0, 0], [2.2, 1.2, 0, 0, 0.8, 0], [0, 0, 2.2, -1.2, 0, 0.8]])
    return (centres[kind] + rng.normal(size=(n, 6))).astype(np.float32), kind


train_x, train_y = parts(2400)
test_x, test_y = parts(800)
mean, std = train_x.mean(0), train_x.std(0)
train_x, test_x = (train_x - mean) / std, (test_x - mean) / std

counts = np.bincount(train_y, minlength=3)
weights = counts.sum() / (3 * counts)
criterion = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32))

loader = DataLoader(TensorDataset(torch.from_numpy(train_x), torch.from_numpy(train_y)), batch_size=80, shuffle=True)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)

for epoch in range(4):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        guess = model(torch.from_numpy(test_x)).argmax(1).numpy()
    recall = {name: round(float((guess[test_y == i] == i).mean()), 3) for i, name in enumerate(NAMES)}
    print(f"epoch {epoch} loss {total / len(loader):.4f} recall {recall}")
