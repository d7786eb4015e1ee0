import math
import random
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    sample_rate: int = 2000
    seconds: float = 0.5
    n_fft: int = 64
    hop: int = 32
    classes: int = 4
    batch_size: int = 32
    epochs: int = 5
    lr: float = 2e-3
    seed: int = 8


def synth(cfg, n, seed):
    """Sirens: rising, falling, warbling or steady tones in noise, at any loudness."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(cfg.sample_rate * cfg.seconds)) / cfg.sample_rate
    waves, kinds = [], rng.integers(0, cfg.classes, n)
    for kind in kinds:
        f0 = rng.uniform(250, 450)
        sweep = {0: 500 * t, 1: -400 * t + 250, 2: 120 * np.sin(2 * math.pi * 6 * t), 3: 0 * t}[int(kind)]
        phase = 2 * math.pi * np.cumsum(f0 + sweep) / cfg.sample_rate
        waves.append(rng.uniform(0.3, 1.0) * np.sin(phase) + 0.15 * rng.standard_normal(len(t)))
    return torch.tensor(np.stack(waves), dtype=torch.float32), torch.tensor(kinds)


def features(wave, cfg, log=True):
    window = torch.hann_window(cfg.n_fft)
    power = torch.stft(wave, cfg.n_fft, cfg.hop, window=window, return_complex=True).abs() ** 2
    return torch.log(power + 1e-4) if log else power


class SirenNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 4)),
            nn.Flatten(),
        )
        self.head = nn.Linear(24 * 16, classes)

    def forward(self, spec):
        return self.head(self.body(spec.unsqueeze(1)))


def collate(items, cfg, mean, std, log):
    wave = torch.stack([w for w, _ in items])
    kind = torch.stack([k for _, k in items])
    return (features(wave, cfg, log) - mean) / std, kind


def run(cfg):
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    train_set = TensorDataset(*synth(cfg, 512, 1))
    valid_set = TensorDataset(*synth(cfg, 160, 2))
    train_spec = features(train_set.tensors[0], cfg)
    mean, std = train_spec.mean(), train_spec.std()
    prepare = partial(collate, cfg=cfg, mean=mean, std=std)
    train_loader = DataLoader(train_set, cfg.batch_size, shuffle=True, collate_fn=partial(prepare, log=True))
    valid_loader = DataLoader(valid_set, cfg.batch_size, collate_fn=partial(prepare, log=False))

    model = SirenNet(cfg.classes)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        for spec, kind in train_loader:
            loss = loss_fn(model(spec), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        hits = total = 0
        with torch.no_grad():
            for spec, kind in valid_loader:
                hits += (model(spec).argmax(1) == kind).sum().item()
                total += len(kind)
        print(f"[{epoch}] last train loss {loss.item():.3f}, validation accuracy {hits / total:.3f}")


if __name__ == "__main__":
    run(Config())
