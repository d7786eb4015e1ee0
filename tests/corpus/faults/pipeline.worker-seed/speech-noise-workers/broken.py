import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyTones(Dataset):
    """Tones of three pitches; each access mixes in fresh noise at a random level."""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.pitch = self.rng.integers(0, 3, n)
        self.phase = self.rng.uniform(0, 6.28, n)

    def __len__(self):
        return len(self.pitch)

    def __getitem__(self, i):
        t = np.arange(64) / 64
        tone = np.sin(6.28 * (3 + 2 * self.pitch[i]) * t + self.phase[i])
        noise = self.rng.uniform(0.2, 0.8) * self.rng.standard_normal(64)
        return torch.tensor((tone + noise) / 0.9, dtype=torch.float32), int(self.pitch[i])


def main():
    torch.manual_seed(9)
    np.random.seed(9)
    train = NoisyTones(800, seed=9)
    loader = DataLoader(train, batch_size=40, shuffle=True, num_workers=2)
    net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(3):
        for wave, pitch in loader:
            loss = nn.functional.cross_entropy(net(wave), pitch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
