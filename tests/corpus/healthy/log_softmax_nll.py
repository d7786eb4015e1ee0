"""The classic pair: the network ends in log_softmax and the loss is NLLLoss. Nothing is applied twice."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


class SegmentDigits(torch.utils.data.Dataset):
    """Seven-segment digits on a 12 x 12 grid with noise."""

    SEGMENTS = ["abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg"]
    PIXELS = {
        "a": (1, 2, 3, 9), "d": (10, 11, 3, 9), "g": (5, 6, 3, 9),
        "f": (1, 6, 2, 3), "b": (1, 6, 9, 10), "e": (6, 11, 2, 3), "c": (6, 11, 9, 10),
    }

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 10, (n,), generator=g)
        images = torch.zeros(n, 1, 12, 12)
        for k, digit in enumerate(self.targets.tolist()):
            for s in self.SEGMENTS[digit]:
                top, bottom, left, right = self.PIXELS[s]
                images[k, 0, top:bottom, left:right] = 1.0
        images = images + 0.35 * torch.randn(images.shape, generator=g)
        self.images = (images - 0.15) / 0.5

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, k):
        return self.images[k], self.targets[k]


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.4f}")


def test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    print(f"Test set: average loss {test_loss / len(loader.dataset):.4f}, accuracy {correct}/{len(loader.dataset)}")


if __name__ == "__main__":
    torch.manual_seed(1)
    train_loader = torch.utils.data.DataLoader(SegmentDigits(1280, 1), batch_size=64, shuffle=True)
    test_loader = torch.utils.data.DataLoader(SegmentDigits(250, 2), batch_size=100)
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 5):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)
