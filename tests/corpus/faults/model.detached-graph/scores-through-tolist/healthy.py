import torch
from torch import nn

torch.manual_seed(23)
N, PARTS, DIM = 800, 6, 5
parts = torch.randn(N, PARTS, DIM)
direction = torch.randn(DIM)
strength = (parts @ direction).amax(1) * 0.7 + parts.mean((1, 2))
strength = ((strength - strength.mean()) / strength.std()).unsqueeze(1)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part_net = nn.Sequential(nn.Linear(DIM, 32), nn.Tanh(), nn.Linear(32, 8))
        self.readout = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def summarise(self, bag):
        codes = self.part_net(bag)
        top = torch.stack([row.amax(0) for row in codes])
        mean = torch.stack([row.mean(0) for row in codes])
        return torch.cat([top, mean], 1)

    def forward(self, bag):
        return self.readout(self.summarise(bag))


model = Scorer()
criterion = nn.HuberLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    total = 0.0
    for rows in torch.randperm(N).split(40):
        optimizer.zero_grad()
        loss = criterion(model(parts[rows]), strength[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    print("epoch", epoch, "huber", total / N)
