"""Music-like spectra: a convolution, log-energy pooling per channel, a linear classifier. Runs under Accelerate."""
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def spectra(n, bins, rng):
    """Each class has its own spacing between the partials."""
    label = rng.integers(0, 5, size=n)
    spectrum = rng.normal(0, 0.5, size=(n, bins))
    for row, k in zip(spectrum, label):
        row[int(rng.integers(0, 3)) :: 3 + k] += 2.0
    return spectrum.astype(np.float32), label


class LogEnergyPool(nn.Module):
    """Logarithm of the mean energy over positions, per channel."""

    def forward(self, maps):
        energy = np.square(maps.detach().cpu().numpy()).mean(axis=2)
        return torch.from_numpy(np.log1p(energy)).to(maps.device)


class SpectrumNet(nn.Module):
    def __init__(self, channels=24, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, channels, 9, padding=4), nn.ReLU(), nn.Conv1d(channels, channels, 9, padding=4), nn.ReLU()
        )
        self.pool = LogEnergyPool()
        self.classifier = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, classes))

    def forward(self, x):
        return self.classifier(self.pool(self.features(x)))


def main():
    set_seed(66)
    rng = np.random.default_rng(66)
    accelerator = Accelerator(cpu=True)
    x, y = spectra(1100, 48, rng)
    x = (x - x[:900].mean()) / x[:900].std()
    data = TensorDataset(torch.from_numpy(x)[:, None], torch.from_numpy(y))
    train_loader = DataLoader(torch.utils.data.Subset(data, range(900)), batch_size=30, shuffle=True)
    eval_loader = DataLoader(torch.utils.data.Subset(data, range(900, 1100)), batch_size=100)
    model = SpectrumNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)

    for epoch in range(3):
        model.train()
        losses = []
        for inputs, labels in train_loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        model.eval()
        right = 0
        for inputs, labels in eval_loader:
            with torch.no_grad():
                right += (model(inputs).argmax(-1) == labels).sum().item()
        accelerator.print(f"epoch {epoch} loss {np.mean(losses):.4f} accuracy {right / 200:.3f}")


if __name__ == "__main__":
    main()
