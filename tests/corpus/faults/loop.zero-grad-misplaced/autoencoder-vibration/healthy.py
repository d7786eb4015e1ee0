"""Anomaly detection: reconstruct vibration windows of a healthy bearing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(64) / 64
        amp = torch.randn(count, 3, 1, generator=g)
        phase = 6.28 * torch.rand(count, 3, 1, generator=g)
        harmonics = torch.tensor([2.0, 4.0, 7.0])[None, :, None]
        signal = (amp * torch.sin(6.28 * harmonics * t + phase)).sum(1)
        signal = signal + 0.05 * torch.randn(count, 64, generator=g)
        self.signal = signal / signal.std()

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, index):
        return self.signal[index]


class AutoEncoder(nn.Module):
    def __init__(self, bottleneck=10):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 48), nn.ELU(), nn.Linear(48, bottleneck))
        self.decode = nn.Sequential(nn.Linear(bottleneck, 48), nn.ELU(), nn.Linear(48, 64))

    def forward(self, x):
        return self.decode(self.encode(x))


class Fitter:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.L1Loss()
        self.optimizer = torch.optim.NAdam(model.parameters(), lr=lr)

    def step(self, x):
        out = self.model(x)
        loss = self.criterion(out, x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            losses = torch.stack([self.step(x) for x in loader])
            print(f"epoch {epoch:2d} mae {losses.mean():.4f}")

    @torch.inference_mode()
    def score(self, data):
        self.model.eval()
        return (self.model(data) - data).abs().mean(1)


if __name__ == "__main__":
    torch.manual_seed(64)
    fitter = Fitter(AutoEncoder(), lr=2e-3)
    fitter.fit(DataLoader(Windows(960, 1), batch_size=48, shuffle=True), epochs=6)
    print(f"median score {fitter.score(Windows(100, 2).signal).median():.4f}")
