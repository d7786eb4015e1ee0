"""Two interleaved rings in eight dimensions, told apart by a deep stack of linear layers."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(71)

DEPTH = 12
HIDDEN = 40


def rings(n):
    label = torch.randint(0, 2, (n,))
    angle = torch.rand(n) * 2 * torch.pi
    radius = 1.0 + label.float() + 0.15 * torch.randn(n)
    plane = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    lift = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    return plane @ lift + 0.05 * torch.randn(n, 8), label


class DeepNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [8] + [HIDDEN] * DEPTH
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.activation = nn.Sigmoid()
        self.output = nn.Linear(HIDDEN, 2)

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.output(x)


x, y = rings(1800)
x = (x - x[:1500].mean(0)) / x[:1500].std(0)
train_loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)

model = DeepNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(4):
    model.train()
    total = 0.0
    for features, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[1500:]).argmax(1) == y[1500:]).float().mean()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {accuracy:.3f}")
