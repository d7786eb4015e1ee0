"""CNN on made-up digit-like glyphs. SGD with momentum, step schedule."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class GlyphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3)
        self.dropout = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 4 * 4, 40)
        self.fc2 = nn.Linear(40, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def glyphs(n):
    """Ten fixed random 12x12 stencils, shifted by up to one pixel and drowned in noise."""
    stencils = (torch.rand(10, 12, 12) > 0.6).float() * 2 - 1
    y = torch.randint(0, 10, (n,))
    x = stencils[y]
    shift = torch.randint(-1, 2, (n,))
    x = torch.stack([torch.roll(im, int(s), dims=1) for im, s in zip(x, shift)])
    x = x + torch.randn_like(x)
    return x.unsqueeze(1) / 1.4, y


def train(model, loader, optimizer, epoch, log_interval=8):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    test_loss = 0.0
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.cross_entropy(output, target).item() * len(target)
            correct += (output.argmax(dim=1) == target).sum().item()
    n = len(loader.dataset)
    print(f"Test set: Average loss: {test_loss / n:.4f}, Accuracy: {correct}/{n} ({100.0 * correct / n:.0f}%)")


def main():
    torch.manual_seed(1)
    x, y = glyphs(2560)
    train_set, test_set = random_split(TensorDataset(x, y), [2048, 512])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)

    model = GlyphNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.6)
    for epoch in range(1, 3):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
