"""Fabric textures, four weaves. Convolutions with instance normalisation, global average, linear head."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def fabrics(count, generator):
    weave = torch.randint(0, 4, (count,), generator=generator)
    grid = torch.arange(20.0)
    phase = torch.rand(count, 1, 1, generator=generator) * 6.28
    along_x = torch.sin(grid[None, None, :] * 1.6 + phase).expand(-1, 20, -1)
    along_y = torch.sin(grid[None, :, None] * 1.6 + phase).expand(-1, -1, 20)
    both = torch.sin((grid[None, None, :] + grid[None, :, None]) * 1.2 + phase)
    fine = torch.sin(grid[None, None, :] * 2.8 + phase) * torch.sin(grid[None, :, None] * 2.8 + phase)
    stack = torch.stack([along_x, along_y, both, fine], dim=1)
    image = stack[torch.arange(count), weave] + 0.4 * torch.randn(count, 20, 20, generator=generator)
    return TensorDataset(image.unsqueeze(1), weave)


class Weaves(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, padding=2)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = self.norm2(F.relu(self.conv2(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


generator = torch.Generator().manual_seed(16)
torch.manual_seed(16)
train = DataLoader(fabrics(1200, generator), batch_size=40, shuffle=True)
test = DataLoader(fabrics(240, generator), batch_size=120)
net = Weaves()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(2):
    net.train()
    for image, weave in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(image), weave)
        loss.backward()
        optimizer.step()
    net.eval()
    confusion = torch.zeros(4, 4, dtype=torch.long)
    with torch.no_grad():
        for image, weave in test:
            for truth, guess in zip(weave, net(image).argmax(dim=1)):
                confusion[truth, guess] += 1
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {confusion.diag().sum().item() / confusion.sum().item():.3f}")
    print(confusion.tolist())
