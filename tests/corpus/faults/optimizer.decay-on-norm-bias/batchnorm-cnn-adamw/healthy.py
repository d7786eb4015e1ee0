"""Depthwise-separable CNN with BatchNorm on synthetic spectrogram patches; AdamW, polynomial decay."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(13)
np.random.seed(13)
torch.manual_seed(13)

BANDS, FRAMES, KEYWORDS = 16, 16, 6


def spectrograms(n, templates):
    """A rising or falling ridge per keyword, in coloured noise."""
    y = np.random.randint(0, KEYWORDS, n)
    ridge = templates[y] * np.random.uniform(0.7, 1.3, size=(n, 1, 1))
    noise = np.random.normal(size=(n, BANDS, FRAMES)) * 0.8
    return torch.tensor(ridge + noise, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


templates = np.zeros((KEYWORDS, BANDS, FRAMES))
for k in range(KEYWORDS):
    slope, base = (k % 3 - 1) * 0.5, 4 + 7 * (k // 3)
    for frame in range(FRAMES):
        band = int(np.clip(base + slope * (frame - FRAMES / 2), 0, BANDS - 1))
        templates[k, band, frame] = 3.0


class Separable(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(cin, cin, 3, stride=stride, padding=1, groups=cin, bias=False)
        self.pointwise = nn.Conv2d(cin, cout, 1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return torch.relu(self.bn(self.pointwise(self.depthwise(x))))


class KeywordNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            Separable(12, 24, stride=1),
            Separable(24, 32, stride=2),
            nn.Flatten(),
            nn.Linear(32 * 16, KEYWORDS),
        )


train_x, train_y = spectrograms(1440, templates)
val_x, val_y = spectrograms(360, templates)
mean, std = train_x.mean(), train_x.std()
train_loader = DataLoader(TensorDataset((train_x - mean) / std, train_y), batch_size=48, shuffle=True)
val_loader = DataLoader(TensorDataset((val_x - mean) / std, val_y), batch_size=120)

EPOCHS, WEIGHT_DECAY = 3, 0.05
net = KeywordNet()
criterion = nn.CrossEntropyLoss()
matrices = [p for p in net.parameters() if p.ndim > 1]
vectors = [p for p in net.parameters() if p.ndim == 1]
groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=2e-3, weight_decay=WEIGHT_DECAY)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2 * EPOCHS, power=1.0)

for epoch in range(EPOCHS):
    net.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(yb)
    scheduler.step()

    net.eval()
    val_loss, right = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            scores = net(xb)
            val_loss += criterion(scores, yb).item() * len(yb)
            right += (scores.argmax(1) == yb).sum().item()
    print(
        f"epoch {epoch + 1}/{EPOCHS}  train {train_loss / len(train_y):.4f}  "
        f"val {val_loss / len(val_y):.4f}  acc {right / len(val_y):.3f}"
    )
