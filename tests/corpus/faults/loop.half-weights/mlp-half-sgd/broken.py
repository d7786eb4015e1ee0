"""Classify sixteen-feature records into five groups; small enough to train in half precision throughout."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(58)
GROUPS, FEATURES = 5, 16
centres = torch.randn(GROUPS, FEATURES)


def records(n):
    group = torch.randint(GROUPS, (n,))
    x = centres[group] + 0.8 * torch.randn(n, FEATURES)
    return x / 1.28, group


def build():
    return nn.Sequential(nn.Linear(FEATURES, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, GROUPS))


x_train, y_train = records(2000)
x_test, y_test = records(500)
dtype = torch.float16
model = build().to(dtype)
x_train, x_test = x_train.to(dtype), x_test.to(dtype)
optimizer = torch.optim.SGD(model.parameters(), lr=8e-4)

for epoch in range(5):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(20):
        loss = F.cross_entropy(model(x_train[rows]).float(), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch} loss {total / len(x_train):.4f} accuracy {accuracy:.3f}")
