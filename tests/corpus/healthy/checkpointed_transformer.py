"""Sequence classification with activation checkpointing: every block's forward runs twice, once inside backward."""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, d, heads, p):
        super().__init__()
        self.norm_a, self.norm_f = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, dropout=p, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(p), nn.Linear(2 * d, d))

    def forward(self, x):
        y = self.norm_a(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.ff(self.norm_f(x))


class Classifier(nn.Module):
    def __init__(self, features=6, d=32, depth=3, classes=4, length=16):
        super().__init__()
        self.proj = nn.Linear(features, d)
        self.pos = nn.Parameter(torch.randn(1, length, d) * 0.1)
        self.blocks = nn.ModuleList([Block(d, 4, 0.1) for _ in range(depth)])
        self.norm, self.fc = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, x):
        x = self.proj(x) + self.pos
        for block in self.blocks:
            if self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.fc(self.norm(x.mean(dim=1)))


def make_waves(n, seed):
    """Four classes of noisy oscillation that differ by frequency."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(16).float()
    phase = torch.rand(n, 1, 6, generator=g) * 6.28
    freq = (0.35 + 0.4 * y.float()).view(n, 1, 1)
    x = torch.sin(freq * t.view(1, 16, 1) + phase) * 1.3 + 0.3 * torch.randn(n, 16, 6, generator=g)
    return TensorDataset(x, y)


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    model.train()
    return right / total


if __name__ == "__main__":
    torch.manual_seed(8)
    train_loader = DataLoader(make_waves(768, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(make_waves(200, 2), batch_size=64)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(3):
        running = 0.0
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / (i + 1):.3f}, test accuracy {accuracy(model, test_loader):.3f}")
