"""ConvNet with BatchNorm on synthetic textures, SGD with momentum under a one-cycle schedule."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)

IMG, NUM_CLASSES, EPOCHS, BS = 16, 5, 2, 32


def textures(n):
    """Gratings whose orientation is the class, buried in noise."""
    y = torch.randint(0, NUM_CLASSES, (n,))
    theta = y.float() * math.pi / NUM_CLASSES
    grid = torch.linspace(-math.pi, math.pi, IMG)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    phase = torch.rand(n) * 2 * math.pi
    proj = theta.cos()[:, None, None] * xx + theta.sin()[:, None, None] * yy
    img = torch.sin(2 * proj + phase[:, None, None]) + 0.7 * torch.randn(n, IMG, IMG)
    return img.unsqueeze(1), y


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_block(1, 8), conv_block(8, 16))
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, NUM_CLASSES)

    def forward(self, x):
        x = self.features(x)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


x_train, y_train = textures(1280)
x_test, y_test = textures(320)
mu, sigma = x_train.mean(), x_train.std()
train_dl = DataLoader(TensorDataset((x_train - mu) / sigma, y_train), batch_size=BS, shuffle=True)
test_dl = DataLoader(TensorDataset((x_test - mu) / sigma, y_test), batch_size=64)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = OneCycleLR(optimizer, max_lr=5.0, total_steps=EPOCHS * len(train_dl), pct_start=0.3)

for epoch in range(EPOCHS):
    model.train()
    for i, (xb, yb) in enumerate(train_dl):
        optimizer.zero_grad()
        logits = model(xb)
        loss = F.cross_entropy(logits, yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 8 == 0:
            lr = scheduler.get_last_lr()[0]
            print(f"epoch {epoch} [{i:2d}/{len(train_dl)}] lr {lr:.4f} loss {loss.item():.4f}")

    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for xb, yb in test_dl:
            logits = model(xb)
            test_loss += F.cross_entropy(logits, yb, reduction="sum").item()
            correct += (logits.argmax(1) == yb).sum().item()
    n = len(test_dl.dataset)
    print(f"epoch {epoch} test loss {test_loss / n:.4f} accuracy {correct / n:.3f}")
