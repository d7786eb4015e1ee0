"""Classify number sequences with a decoder-style model and a summary token."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1312)
SYMBOLS, LENGTH, CLASSES, WIDTH = 20, 10, 4, 32


def sequences(n):
    """The class is the residue that most symbols of the row share."""
    label = torch.randint(CLASSES, (n,))
    typical = torch.randint(SYMBOLS // CLASSES, (n, LENGTH)) * CLASSES + label[:, None]
    return TensorDataset(torch.where(torch.rand(n, LENGTH) < 0.6, typical, torch.randint(SYMBOLS, (n, LENGTH))), label)


class Attention(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(b, t, WIDTH))


class SummaryClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, WIDTH)
        self.position = nn.Parameter(0.2 * torch.randn(LENGTH + 1, WIDTH))
        self.summary = nn.Parameter(0.5 * torch.randn(1, 1, WIDTH))
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, row):
        summary = self.summary.expand(len(row), -1, -1)
        h = torch.cat([self.symbol(row), summary], dim=1) + self.position
        h = h + self.attention(self.norm1(h))
        h = h + self.feed(self.norm2(h))
        return self.head(self.norm3(h[:, -1]))


train_loader = DataLoader(sequences(1200), batch_size=40, shuffle=True)
test_loader = DataLoader(sequences(300), batch_size=100)
model = SummaryClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    model.train()
    total = 0.0
    for row, label in train_loader:
        loss = F.cross_entropy(model(row), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    predicted, labels = [], []
    with torch.no_grad():
        for row, label in test_loader:
            predicted.append(model(row).argmax(1))
            labels.append(label)
    predicted, labels = torch.cat(predicted), torch.cat(labels)
    counts = torch.bincount(predicted, minlength=CLASSES).tolist()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {(predicted == labels).float().mean():.3f} {counts}")
