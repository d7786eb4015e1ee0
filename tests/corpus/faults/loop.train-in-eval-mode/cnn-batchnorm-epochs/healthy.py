"""Classify rotated L-shapes with a batch-normalised CNN; accuracy on a held-out set after every epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(16)


def shapes(n, size=10):
    base = torch.zeros(size, size)
    base[2:8, 2:4] = 1.5
    base[6:8, 2:8] = 1.5
    turns = torch.randint(4, (n,))
    images = torch.stack([torch.rot90(base, int(k)) for k in turns])
    images = images + 1.2 * torch.randn(n, size, size)
    images = (images - images.mean()) / images.std()
    return TensorDataset(images.unsqueeze(1), turns)


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(24)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(24 * 25, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(self.dropout(x.flatten(1)))


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for image, label in loader:
            right += (model(image).argmax(1) == label).sum().item()
    return right / len(loader.dataset)


train_loader = DataLoader(shapes(800), batch_size=32, shuffle=True)
test_loader = DataLoader(shapes(200), batch_size=100)
model = ShapeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(4):
    model.train()
    total = 0.0
    for image, label in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {evaluate(model, test_loader):.3f}")
