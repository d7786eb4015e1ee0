import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(4)
area, floor, distance = torch.rand(1200) * 2 - 1, torch.rand(1200) * 2 - 1, torch.rand(1200) * 2 - 1
rent = 1.5 * area - 0.8 * distance + 0.4 * floor * area + 0.05 * torch.randn(1200)
features = torch.stack([area, floor, distance], dim=1)
rent = (rent - rent.mean()) / rent.std()
train, valid = random_split(TensorDataset(features, rent), [1000, 200])

regressor = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(regressor.parameters(), lr=0.05, momentum=0.9)


def squared_error(guess, truth):
    return ((guess - truth) ** 2).mean()


for epoch in range(4):
    regressor.train()
    for x, y in DataLoader(train, batch_size=50, shuffle=True):
        optimizer.zero_grad()
        loss = squared_error(regressor(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    regressor.eval()
    with torch.no_grad():
        gaps = [(regressor(x)[:, 0] - y).abs() for x, y in DataLoader(valid, batch_size=100)]
    print(f"epoch {epoch}: train {loss.item():.4f}, mean absolute gap {torch.cat(gaps).mean().item():.4f}")
