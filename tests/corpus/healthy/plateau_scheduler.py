"""ReduceLROnPlateau on the validation loss: the LR stays put for many epochs, and step() takes a metric, once an epoch."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class SineNet(nn.Module):
    """Fits a surface of several sines; sine activations in the first layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 64)
        self.second = nn.Linear(64, 32)
        self.last = nn.Linear(32, 1)
        nn.init.uniform_(self.first.weight, -1.5, 1.5)

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.sin(self.first(x)))))


def surface(n):
    x = torch.empty(n, 3).uniform_(-math.sqrt(3), math.sqrt(3))
    y = torch.sin(2 * x[:, :1]) + torch.cos(1.5 * x[:, 1:2]) * x[:, 2:] + 0.1 * torch.randn(n, 1)
    return TensorDataset(x, y)


def main():
    torch.manual_seed(7)
    train, val = random_split(surface(1200), [1000, 200])
    train_loader = DataLoader(train, batch_size=100, shuffle=True)
    val_loader = DataLoader(val, batch_size=200)
    net = SineNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1, threshold=0.02)
    loss_fn = nn.MSELoss()

    for epoch in range(14):
        net.train()
        fitted = 0.0
        for x, y in train_loader:
            loss = loss_fn(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            fitted += loss.item() * len(x) / len(train)
        net.eval()
        with torch.no_grad():
            held_out = sum(loss_fn(net(x), y).item() * len(x) for x, y in val_loader) / len(val)
        scheduler.step(held_out)
        print(f"epoch {epoch:2d} train {fitted:.4f} val {held_out:.4f} lr {optimizer.param_groups[0]['lr']:.1e}")


if __name__ == "__main__":
    main()
