"""Forecast tomorrow's demand from calendar and lag features with a residual MLP."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(93)


def demand(n):
    day = torch.rand(n, 1) * 365
    week = torch.rand(n, 1) * 7
    lags = torch.randn(n, 6)
    calendar = torch.cat([torch.sin(day / 58.1), torch.cos(day / 58.1), torch.sin(week / 1.114), torch.cos(week / 1.114)], 1)
    y = lags[:, 0] * calendar[:, 0] + 0.7 * lags[:, 1] + torch.relu(lags[:, 2]) * calendar[:, 2] + 0.1 * torch.randn(n)
    return torch.cat([calendar * 1.414, lags], dim=1), y


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.contract(F.silu(self.expand(self.norm(x))))


class DemandModel(nn.Module):
    def __init__(self, features, width=32, depth=3):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.ModuleList([ResidualBlock(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)[:, 0]


x, y = demand(2600)
x_train, y_train, x_valid, y_valid = x[:2100], y[:2100], x[2100:], y[2100:]
centre, scale = y_train.mean(), y_train.std()
y_train, y_valid = (y_train - centre) / scale, (y_valid - centre) / scale

model = DemandModel(x.shape[1])
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)

for epoch in range(3):
    model.train()
    for i, index in enumerate(torch.randperm(len(x_train)).split(70)):
        loss = F.l1_loss(model(x_train[index]), y_train[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 15 == 0:
            print(f"epoch {epoch} batch {i} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} validation error {F.l1_loss(model(x_valid), y_valid).item():.4f}")
