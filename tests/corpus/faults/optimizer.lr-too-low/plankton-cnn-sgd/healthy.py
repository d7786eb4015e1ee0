import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def plankton(n, seed):
    g = torch.Generator().manual_seed(seed)
    kinds = torch.randn(6, 1, 14, 14, generator=torch.Generator().manual_seed(100))
    y = torch.randint(0, 6, (n,), generator=g)
    x = kinds[y] + torch.randn(n, 1, 14, 14, generator=g)
    return TensorDataset(x / 2**0.5, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 3)
        self.conv2 = nn.Conv2d(10, 20, 3)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(20 * 2 * 2, 40)
        self.fc2 = nn.Linear(40, 6)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def train(model, loader, optimizer, epoch):
    model.train()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"Train Epoch: {epoch} [{i * len(x)}/{len(loader.dataset)}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            correct += out.argmax(1).eq(y).sum().item()
    n = len(loader.dataset)
    print(f"Test set: Average loss: {loss / n:.4f}, Accuracy: {correct}/{n}")


def main():
    parser = argparse.ArgumentParser(description="plankton images")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-2)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(plankton(960, 1), args.batch_size, shuffle=True)
    test_loader = DataLoader(plankton(240, 2), 120)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)


if __name__ == "__main__":
    main()
