# Texture pairs: are the two patches in the picture made of the same material?
# A small conv net with a SAGAN-style self-attention block in the middle.
import numpy as np
import torch
from torch import nn, optim

SEED = 7
torch.manual_seed(SEED)
np.random.seed(SEED)

SIZE = 16
BATCH = 32
STEPS = 100


def sample_pictures(n):
    """Two 4x4 stamps at random places; label 1 when they carry the same pattern."""
    stamps = np.array([
        [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]],
        [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]],
        [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]],
    ], dtype=np.float32) * 2 - 1
    pics = 0.2 * np.random.randn(n, 1, SIZE, SIZE).astype(np.float32)
    labels = np.random.randint(0, 2, n)
    for i in range(n):
        a = np.random.randint(3)
        b = a if labels[i] else (a + np.random.randint(1, 3)) % 3
        ya, xa = np.random.randint(0, 4), np.random.randint(0, 12)
        yb, xb = np.random.randint(8, 12), np.random.randint(0, 12)
        pics[i, 0, ya:ya + 4, xa:xa + 4] += 2 * stamps[a]
        pics[i, 0, yb:yb + 4, xb:xb + 4] += 2 * stamps[b]
    return torch.from_numpy(pics), torch.from_numpy(labels).float()


class SelfAttention2d(nn.Module):
    def __init__(self, channels, inner=16):
        super().__init__()
        self.query = nn.Conv2d(channels, inner, 1)
        self.key = nn.Conv2d(channels, inner, 1)
        self.value = nn.Conv2d(channels, channels, 1)
        self.softmax = nn.Softmax(dim=-1)
        self.scale = inner ** -0.5

    def forward(self, x):
        b, c, h, w = x.shape
        q = self.query(x).view(b, -1, h * w).permute(0, 2, 1)   # b, n, inner
        k = self.key(x).view(b, -1, h * w)                      # b, inner, n
        v = self.value(x).view(b, -1, h * w)                    # b, c, n
        attention = self.softmax(torch.bmm(q, k) * self.scale)  # b, n, n
        out = torch.bmm(v, attention.permute(0, 2, 1))          # b, c, n
        return x + out.view(b, c, h, w)


class PairNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 4, padding=1), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.attention = SelfAttention2d(width)
        self.tail = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.out = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        x = self.tail(self.attention(self.stem(x)))
        return self.out(x.amax((2, 3))).squeeze(1)


train_x, train_y = sample_pictures(2000)
val_x, val_y = sample_pictures(300)
net = PairNet()
optimizer = optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

net.train()
order = torch.randperm(len(train_x))
for step in range(STEPS):
    start = step * BATCH % (len(train_x) - BATCH)
    if step and start < BATCH:
        order = torch.randperm(len(train_x))
    pick = order[start:start + BATCH]
    optimizer.zero_grad()
    loss = criterion(net(train_x[pick]), train_y[pick])
    loss.backward()
    optimizer.step()
    if (step + 1) % 20 == 0:
        net.eval()
        with torch.no_grad():
            right = ((net(val_x) > 0).float() == val_y).float().mean()
        net.train()
        print(f"[{step + 1}] loss={loss.item():.4f} val_acc={right:.3f}")
