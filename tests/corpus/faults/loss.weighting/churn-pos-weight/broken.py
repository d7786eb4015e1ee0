"""Churn model on tabular records, few positives."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(64)
torch.manual_seed(64)

n = 3000
X = np.random.randn(n, 10).astype("float32")
score = 1.5 * X[:, 0] - X[:, 1] + 0.8 * X[:, 2] * X[:, 3] + 0.5 * np.random.randn(n)
y = (score > np.quantile(score, 0.92)).astype("float32")
cut = 2400
X, y = torch.from_numpy(X), torch.from_numpy(y)
train = DataLoader(TensorDataset(X[:cut], y[:cut]), batch_size=60, shuffle=True)

left, stayed = y[:cut].sum(), (1 - y[:cut]).sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=left / stayed)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(3):
    net.train()
    total = 0.0
    for rows, target in train:
        optimizer.zero_grad()
        loss = criterion(net(rows).squeeze(1), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        says = net(X[cut:]).squeeze(1) > 0
        truth = y[cut:] > 0.5
        recall = (says & truth).sum() / truth.sum()
        specificity = (~says & ~truth).sum() / (~truth).sum()
    print(f"epoch {epoch} loss {total / len(train):.4f} recall {recall:.3f} specificity {specificity:.3f}")
