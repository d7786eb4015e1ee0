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


PATTERNS = torch.randn(4, 4, 6, generator=torch.Generator().manual_seed(99))


def make_bursts(n, seed):
    """One of four short patterns is hidden somewhere in a noisy signal; the class is which one."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 16, 6, generator=g)
    for i, start in enumerate(torch.randint(0, 13, (n,), generator=g).tolist()):
        x[i, start : start + 4] += 1.5 * PATTERNS[y[i]]
    return TensorDataset(x / 1.25, y)


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
    train_loader = DataLoader(make_bursts(768, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(make_bursts(200, 2), batch_size=64)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(4):
        running = 0.0
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / (i + 1):.3f}, test accuracy {accuracy(model, test_loader):.3f}")
