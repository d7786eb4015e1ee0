"""A classifier with a data set of its own and a validation pass. The argument names what is wrong
with its data or its score.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

fault = sys.argv[1]
torch.manual_seed(0)
weights = torch.randn(12, 3)


class Points(Dataset):
    def __init__(self, size):
        self.x = torch.randn(size, 12)
        self.y = (self.x @ weights).argmax(1)
        if fault.startswith("rare"):
            self.x[:, 0] -= 1.0
            self.y = (self.x[:, 0] > 0.8).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if fault == "slow":
            time.sleep(0.003)
        if fault == "scrambled":
            x = x[torch.randperm(12)]
        return (x * 200 + 500 if fault == "raw" else x), self.y[i]


model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 if fault == "rare_slow" else 0.3)
train, validation = (
    DataLoader(Points(480), batch_size=16, shuffle=True),
    DataLoader(Points(65), batch_size=32),
)
for epoch in range(3):
    model.train()
    for x, y in train:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    scores, right = [], 0
    with torch.no_grad():
        for x, y in validation:
            hits = (model(x).argmax(1) == y).float()
            scores.append(hits.mean())
            right += int(hits.sum())
    score = sum(scores) / len(scores) if fault == "mean_of_means" else torch.tensor(right / 65)
    print(f"epoch {epoch}: accuracy {float(score):.4f}")
