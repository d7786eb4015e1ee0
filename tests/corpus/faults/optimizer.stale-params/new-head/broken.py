"""A trunk trained on coarse categories gets a new head for the fine ones."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(85)
COARSE, FINE, DIM = 3, 9, 18
centres = 1.3 * torch.randn(FINE, DIM)


def catalogue(n):
    fine = torch.randint(FINE, (n,))
    x = centres[fine] + torch.randn(n, DIM)
    return TensorDataset((x - centres.mean(0)) / 1.6, fine // 3, fine)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.trunk(x))


def train(model, optimizer, loader, which, epochs):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch[0]), batch[which])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"  epoch {epoch} loss {total / len(loader):.4f}")


def accuracy(model, loader, which):
    model.eval()
    with torch.no_grad():
        return sum((model(b[0]).argmax(1) == b[which]).sum().item() for b in loader) / len(loader.dataset)


train_loader = DataLoader(catalogue(960), batch_size=32, shuffle=True)
test_loader = DataLoader(catalogue(240), batch_size=120)

model = Net(COARSE)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
print("coarse categories")
train(model, optimizer, train_loader, 1, epochs=2)
print(f"  accuracy {accuracy(model, test_loader, 1):.3f}")

print("fine categories")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model.head = nn.Linear(64, FINE)
train(model, optimizer, train_loader, 2, epochs=3)
print(f"  accuracy {accuracy(model, test_loader, 2):.3f}")
