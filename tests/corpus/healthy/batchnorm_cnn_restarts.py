"""BatchNorm CNN, SGD with momentum, cosine schedule with warm restarts: the LR rises again at each restart, on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, Subset, TensorDataset

SEED, CLASSES = 123, 6
torch.manual_seed(SEED)


def textures(n):
    """Each class is a fixed 3-channel template, shifted in a circle and covered in noise."""
    templates = F.interpolate(torch.randn(CLASSES, 3, 4, 4), size=12, mode="bilinear")
    y = torch.randint(CLASSES, (n,))
    x = torch.stack([t.roll((int(a), int(b)), (1, 2)) for t, a, b in zip(templates[y], *torch.randint(0, 3, (2, n)))])
    return x + 0.5 * torch.randn_like(x), y


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.c2, self.b2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(x + self.b2(self.c2(y)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.block = ResBlock(16)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.fc(self.block(self.stem(x)).mean(dim=(2, 3)))


x, y = textures(1100)
train_idx, val_idx = range(900), range(900, 1100)
mean = x[:900].mean(dim=(0, 2, 3), keepdim=True)
std = x[:900].std(dim=(0, 2, 3), keepdim=True)
data = TensorDataset((x - mean) / std, y)
train_loader = DataLoader(Subset(data, train_idx), batch_size=50, shuffle=True)
val_loader = DataLoader(Subset(data, val_idx), batch_size=100)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=36, T_mult=1, eta_min=1e-3)  # a restart every two epochs

for epoch in range(6):
    net.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        train_loss += loss.item() * len(yb)
    net.eval()
    correct, val_loss = 0, 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            logits = net(xb)
            val_loss += F.cross_entropy(logits, yb, reduction="sum").item()
            correct += (logits.argmax(1) == yb).sum().item()
    print(f"{epoch}: lr {optimizer.param_groups[0]['lr']:.4f} train {train_loss / 900:.3f} val {val_loss / 200:.3f} acc {correct / 200:.3f}")
