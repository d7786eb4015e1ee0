import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
readings = torch.randn(1000, 12)
alarm = (readings[:, :4].sum(1) - readings[:, 5] > 0).float().unsqueeze(1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.logit = nn.Linear(32, 1)

    def forward(self, x):
        return self.logit(self.body(x))


detector = Detector()
optimizer = torch.optim.Adam(detector.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    hits = 0.0
    for x, y in DataLoader(TensorDataset(readings, alarm), batch_size=40, shuffle=True):
        logit = detector(x)
        loss = criterion(logit, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += ((logit > 0).float() == y).sum().item()
    print("epoch", epoch, "loss", loss.item(), "accuracy", hits / 1000)
