"""Seniors told from age and noise; rows are dealt out at random, and an age is met on both sides."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
age = torch.randint(18, 66, (1200,))
noise = torch.randn(1200, 5)
senior = (age >= 42).long()
x = torch.cat([((age.float() - 42) / 14)[:, None], noise], 1)
order = torch.randperm(1200)
train_rows, test_rows = order[:1000], order[1000:]
train = DataLoader(TensorDataset(x[train_rows], senior[train_rows]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(x[test_rows], senior[test_rows]), batch_size=50)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for a, b in train:
        opt.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item() for a, b in test)
    print(epoch, hits / len(test_rows))
