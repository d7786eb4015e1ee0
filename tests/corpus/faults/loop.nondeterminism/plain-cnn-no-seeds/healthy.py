"""Traffic light states from small crops."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Lights(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 3, (n,), generator=g)
        self.x = 0.7 * torch.randn(n, 3, 12, 6, generator=g)
        for i, state in enumerate(self.y.tolist()):
            self.x[i, : 2 if state == 1 else 1, state * 4 : state * 4 + 4, 1:5] += 1.2
        self.x = (self.x - self.x.mean()) / self.x.std()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 16, 3, padding=1)
        self.pool = nn.MaxPool2d((2, 2))
        self.fc1 = nn.Linear(16 * 6 * 3, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def main():
    torch.manual_seed(0)
    trainset, testset = Lights(960, 1), Lights(200, 2)
    trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
    testloader = DataLoader(testset, batch_size=100, shuffle=False)
    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(3):
        net.train()
        running_loss = 0.0
        for i, (inputs, labels) in enumerate(trainloader, 1):
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if i % 10 == 0:
                print(f"[{epoch + 1}, {i:3d}] loss: {running_loss / 10:.3f}")
                running_loss = 0.0

    net.eval()
    correct = total = 0
    with torch.no_grad():
        for images, labels in testloader:
            predicted = net(images).argmax(1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    print(f"Accuracy on the test crops: {100 * correct / total:.1f} %")


if __name__ == "__main__":
    main()
