"""Classify machine states from sensor windows; every window is normalised inside the model."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(15)

STATES = ("steady", "oscillating", "drifting")
STEPS = 40


def record(n):
    """Windows of one channel, at any offset. In a few, the sensor sat at its stop for the whole window."""
    state = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 1, STEPS)
    noise = 0.3 * torch.randn(n, STEPS)
    sine = torch.sin(2 * torch.pi * (3 * t + torch.rand(n, 1)))
    slope = 3.0 * (t - 0.5) * torch.where(torch.rand(n, 1) < 0.5, -1.0, 1.0)
    window = noise + torch.where(state[:, None] == 1, sine, 0.0) + torch.where(state[:, None] == 2, slope, 0.0)
    window = window + 0.5 * torch.randn(n, 1)
    stuck = (state == 0) & (torch.rand(n) < 0.02)
    window[stuck] = torch.randint(-16, 17, (int(stuck.sum()), 1)) / 16
    return window, state


class WindowNorm(nn.Module):
    """Zero mean and unit spread per window, with a learned gain and offset."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        std = x.std(dim=-1, keepdim=True)
        return self.gain * (x - mean) / (std + 1e-3) + self.offset


class StateClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = WindowNorm()
        self.conv1 = nn.Conv1d(1, 16, 7, stride=2)
        self.conv2 = nn.Conv1d(16, 16, 5, stride=2)
        self.out = nn.Linear(16 * 7, 3)

    def forward(self, x):
        x = self.norm(x)[:, None]
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.out(x.flatten(1))


train = DataLoader(TensorDataset(*record(2000)), batch_size=25, shuffle=True)
test_x, test_y = record(300)
model = StateClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for step, (window, state) in enumerate(train):
    optimizer.zero_grad()
    loss = criterion(model(window), state)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2d} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    guess = model(test_x).argmax(dim=1)
for i, name in enumerate(STATES):
    print(name, (guess[test_y == i] == i).float().mean().item())
