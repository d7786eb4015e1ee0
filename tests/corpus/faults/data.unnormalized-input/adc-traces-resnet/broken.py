"""Pulse shapes from a 12-bit digitiser: neutron or gamma? A small 1-d residual network."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def digitise(count, seed):
    generator = np.random.default_rng(seed)
    is_neutron = generator.integers(0, 2, count)
    t = np.arange(64)
    tail = np.where(is_neutron, 22.0, 14.0) * generator.normal(1.0, 0.08, count)
    pulse = np.exp(-np.maximum(t - 10, 0)[None] / tail[:, None]) * (t >= 10)
    height = generator.uniform(900, 2200, (count, 1))
    trace = 1600 + height * pulse + generator.normal(0, 40, (count, 64))
    return np.clip(np.rint(trace), 0, 4095).astype(np.int16), is_neutron


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv1d(channels, channels, 5, padding=2)
        self.b = nn.Conv1d(channels, channels, 5, padding=2)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))


class PulseNet(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.stem = nn.Conv1d(1, channels, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(Residual(channels), Residual(channels))
        self.head = nn.Linear(channels, 2)

    def forward(self, trace):
        h = self.blocks(torch.relu(self.stem(trace.unsqueeze(1))))
        return self.head(h.mean(dim=2))


def main():
    torch.manual_seed(14)
    np.random.seed(14)
    traces, kinds = digitise(2000, 14)
    data = TensorDataset(torch.tensor(traces, dtype=torch.float32), torch.tensor(kinds))
    train, test = random_split(data, [1600, 400], generator=torch.Generator().manual_seed(1))
    loader = DataLoader(train, batch_size=64, shuffle=True)
    model = PulseNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        model.train()
        running = []
        for trace, kind in loader:
            loss = nn.functional.cross_entropy(model(trace), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running.append(loss.item())
        model.eval()
        right = 0
        with torch.no_grad():
            for trace, kind in DataLoader(test, batch_size=200):
                right += (model(trace).argmax(1) == kind).sum().item()
        print(f"epoch {epoch} loss {np.mean(running):.4f} test accuracy {right / len(test):.3f}")


if __name__ == "__main__":
    main()
