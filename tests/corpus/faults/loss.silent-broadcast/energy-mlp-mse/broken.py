"""Predict a building's energy use from eight measurements. MLP, F.mse_loss, cosine schedule."""
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
torch.manual_seed(83)

x = torch.randn(2400, 8)
y = 1.2 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.6 * torch.cos(2 * x[:, 4]) + 0.1 * torch.randn(2400)
y = y / 2.0
train_set, test_set = random_split(TensorDataset(x, y), [2000, 400])
train_loader = DataLoader(train_set, batch_size=80, shuffle=True)
test_loader = DataLoader(test_set, batch_size=400)


class EnergyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


EPOCHS = 5
model = EnergyModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(train_loader), eta_min=1e-4)

for epoch in range(EPOCHS):
    model.train()
    for inputs, energy in train_loader:
        loss = F.mse_loss(model(inputs), energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        for inputs, energy in test_loader:
            test_loss = F.mse_loss(model(inputs), energy)
    print(f"epoch {epoch + 1} train {loss.item():.4f} test {test_loss.item():.4f}")
