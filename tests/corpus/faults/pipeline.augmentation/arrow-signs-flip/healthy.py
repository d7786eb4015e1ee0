import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ArrowSigns(Dataset):
    """Road signs that point left or right."""

    def __init__(self, n, train, seed):
        g = torch.Generator().manual_seed(seed)
        self.train = train
        self.labels = torch.randint(0, 2, (n,), generator=g)
        self.images = 0.35 * torch.randn(n, 1, 12, 12, generator=g)
        for image, label in zip(self.images, self.labels):
            row = int(torch.randint(4, 8, (1,), generator=g))
            image[0, row, 2:10] += 1.5
            tip = 8 if label == 1 else 3
            image[0, row - 2 : row + 3, tip] += 1.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.train and random.random() < 0.5:
            image = image.flip(1)
        return image, self.labels[i]


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        pairs = [(model(image).argmax(1) == label).float().mean() for image, label in loader]
    return torch.stack(pairs).mean().item()


random.seed(20)
torch.manual_seed(20)
train_loader = DataLoader(ArrowSigns(1600, True, 20), batch_size=32, shuffle=True)
test_loader = DataLoader(ArrowSigns(320, False, 21), batch_size=80)
model = nn.Sequential(nn.Flatten(), nn.Linear(144, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for step, (image, label) in enumerate(train_loader):
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
    print(f"test accuracy {accuracy(model, test_loader):.3f}")
