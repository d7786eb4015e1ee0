"""Spam or not, from word-frequency features: small MLP, plain loop."""
import numpy as np
import torch
import torch.nn as nn

np.random.seed(10)
torch.manual_seed(10)

FEATURES = 20
n = 2000
weights = np.random.normal(size=FEATURES)
frequencies = np.random.gamma(2.0, 1.0, size=(n, FEATURES))
logit = (frequencies - 2.0) @ weights + 1.5 * (frequencies[:, 0] > 2) * (frequencies[:, 1] > 2)
spam = (logit > np.median(logit)).astype(np.float32)

split = 1600
mean, std = frequencies[:split].mean(0), frequencies[:split].std(0)
x = torch.tensor((frequencies - mean) / std, dtype=torch.float32)
y = torch.tensor(spam).unsqueeze(1)

layers = [
    nn.Linear(FEATURES, 32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid(),
]
model = nn.Sequential(*layers)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(4):
    model.train()
    order = np.random.permutation(split)
    total = 0.0
    for i in range(0, split, 64):
        rows = order[i : i + 64]
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        test_loss = criterion(model(x[split:]), y[split:]).item()
    print(f"epoch {epoch}: train {total / split:.4f} test {test_loss:.4f}")
