"""Shape recognition on point clouds, PointNet style."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(61)


class Clouds(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 3, (n,), generator=g)
        u = torch.rand(n, 32, generator=g) * 2 * math.pi
        v = torch.rand(n, 32, generator=g) * 2 - 1
        ring = torch.stack([u.cos(), u.sin(), 0.1 * v], 1)
        ball = torch.stack([u.cos() * (1 - v**2).sqrt(), u.sin() * (1 - v**2).sqrt(), v], 1)
        rod = torch.stack([0.1 * u.cos(), 0.1 * u.sin(), v], 1)
        self.x = torch.where(self.y[:, None, None] == 0, ring, torch.where(self.y[:, None, None] == 1, ball, rod))
        self.x = self.x + 0.1 * torch.randn(self.x.shape, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Sequential(nn.Conv1d(3, 24, 1), nn.ReLU(), nn.Conv1d(24, 48, 1), nn.ReLU())
        self.cloud = nn.Sequential(
            nn.Linear(48, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU()
        )
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.cloud(self.points(x).amax(-1)))


BATCH = 16
train = DataLoader(Clouds(480, 1), batch_size=BATCH, shuffle=True, drop_last=True)
valid = DataLoader(Clouds(120, 2), batch_size=60)
net = PointNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(3):
    net.train()
    seen = []
    for x, y in train:
        loss = ce(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen.append(loss.item())
    net.eval()
    with torch.no_grad():
        pairs = [(net(x), y) for x, y in valid]
    acc = sum((o.argmax(1) == y).sum().item() for o, y in pairs) / 120
    print(f"epoch {epoch} train {sum(seen) / len(seen):.3f} valid {sum(ce(o, y).item() for o, y in pairs) / 2:.3f} acc {acc:.3f}")
