"""Gesture recognition from accelerometer windows with a two-layer GRU."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(99)


def gestures(n=700, steps=20):
    kind = torch.randint(0, 5, (n,))
    t = torch.linspace(0, 1, steps)
    speed = 1.0 + kind.float()[:, None]
    phase = 6.28 * torch.rand(n, 1)
    wave = 6.28 * speed * t[None] + phase
    x = torch.stack([wave.sin(), wave.cos(), (2 * wave).sin() * (kind[:, None] % 2)], dim=-1)
    return x + 0.15 * torch.randn_like(x), kind


class GestureNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, num_layers=2, batch_first=True)
        self.readout = nn.Linear(hidden, 5)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.readout(states.mean(dim=1))


dataset = TensorDataset(*gestures())
train_part, test_part = random_split(dataset, [600, 100])
train_loader = DataLoader(train_part, batch_size=24, shuffle=True)
test_loader = DataLoader(test_part, batch_size=25)
net = GestureNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=8e-3)

for epoch in range(4):
    net.train()
    sums, count = 0.0, 0
    for batch, kinds in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(batch), kinds)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        sums += loss.item() * len(batch)
        count += len(batch)
    net.eval()
    right = 0
    with torch.no_grad():
        for batch, kinds in test_loader:
            right += (net(batch).argmax(1) == kinds).sum().item()
    print(f"epoch {epoch + 1}: loss {sums / count:.4f}  accuracy {right / len(test_part):.2%}")
