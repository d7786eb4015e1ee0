"""MLP-Mixer on synthetic multivariate series, run through Accelerate."""
import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MixerLayer(nn.Module):
    def __init__(self, times, channels):
        super().__init__()
        self.norm_time, self.norm_channel = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.time_mix = nn.Sequential(nn.Linear(times, 2 * times), nn.GELU(), nn.Linear(2 * times, times))
        self.channel_mix = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels))

    def forward(self, x):
        x = x + self.time_mix(self.norm_time(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mix(self.norm_channel(x))


class SeriesMixer(nn.Module):
    def __init__(self, times=16, inputs=6, channels=24, classes=4, depth=2):
        super().__init__()
        self.stem = nn.Linear(inputs, channels)
        self.layers = nn.ModuleList(MixerLayer(times, channels) for _ in range(depth))
        self.final = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.final(x).mean(1))


def waves(n, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, n)
    t = np.arange(16)[None, :, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 6))
    x = np.sin(2 * np.pi * (1 + label)[:, None, None] * t / 16 + phase) * 1.3 + rng.normal(0, 0.4, (n, 16, 6))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


def parameter_groups(model, decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def train():
    set_seed(3)
    accelerator = Accelerator(cpu=True)
    model = SeriesMixer()
    optimizer = torch.optim.AdamW(parameter_groups(model, decay=0.1), lr=3e-3)
    loader = DataLoader(waves(960, 0), batch_size=32, shuffle=True)
    held = DataLoader(waves(192, 1), batch_size=96)
    model, optimizer, loader, held = accelerator.prepare(model, optimizer, loader, held)
    for epoch in range(3):
        model.train()
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        correct = 0
        for x, y in held:
            with torch.no_grad():
                correct += (model(x).argmax(-1) == y).sum().item()
        accelerator.print(f"epoch {epoch} last loss {loss.item():.4f} accuracy {correct / 192:.3f}")


train()
