"""Seven-segment digits at low resolution: small CNN with a negative log-likelihood loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
PLACES = {
    "a": (slice(1, 2), slice(2, 6)),
    "b": (slice(1, 6), slice(6, 7)),
    "c": (slice(5, 11), slice(6, 7)),
    "d": (slice(10, 11), slice(2, 6)),
    "e": (slice(5, 11), slice(1, 2)),
    "f": (slice(1, 6), slice(1, 2)),
    "g": (slice(5, 6), slice(2, 6)),
}


def digits(n):
    label = torch.randint(0, 10, (n,))
    image = 0.5 * torch.randn(n, 1, 12, 8)
    for i, d in enumerate(label.tolist()):
        for segment in SEGMENTS[d]:
            image[(i, 0, *PLACES[segment])] += 1.5
    return image, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 3)
        self.conv2 = nn.Conv2d(10, 16, 3)
        self.dropout = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 4 * 2, 48)
        self.fc2 = nn.Linear(48, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(x.flatten(1))
        x = self.fc2(F.relu(self.fc1(x)))
        return F.softmax(x, dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for i, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"Train Epoch: {epoch} [{i * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            correct += (output.argmax(dim=1) == target).sum().item()
    size = len(loader.dataset)
    print(f"Test set: Average loss: {loss / size:.4f}, Accuracy: {correct}/{size}")


def main():
    torch.manual_seed(1)
    image, label = digits(1500)
    image = (image - image[:1250].mean()) / image[:1250].std()
    train_loader = DataLoader(TensorDataset(image[:1250], label[:1250]), batch_size=50, shuffle=True)
    test_loader = DataLoader(TensorDataset(image[1250:], label[1250:]), batch_size=250)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    for epoch in range(1, 4):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
