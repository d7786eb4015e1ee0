import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
CLASSES = 10


def make(n):
    y = torch.randint(CLASSES, (n,))
    x = 0.5 * torch.randn(n, 1, 16, 16)
    for i, c in enumerate(y.tolist()):
        x[i, 0, c : c + 4, 3:12] += 1.0
    return TensorDataset(x, y)


torch.manual_seed(2)
loader = DataLoader(make(1920), batch_size=64, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
    nn.Flatten(), nn.Linear(512, CLASSES),
).to(device)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    right = torch.zeros(CLASSES, device=device)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        scores = net(x)
        loss = F.cross_entropy(scores, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit = scores.argmax(1) == y
        for c in range(CLASSES):
            right[c] += (hit & (y == c)).sum().item()
    print(epoch, [round(r, 1) for r in right.tolist()])
